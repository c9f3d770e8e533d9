package catalog

import (
	"context"
	"fmt"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"
)

// Index is a valid B-tree index of a table or of a partition.
type Index struct {
	Schema, Relation string // of the table
	Name             string // quoted
	Columns          []string
	Predicate        string // of a partial index, else empty
}

// Indexes reads the B-tree indexes of a table and of all its partitions.
func (t *Table) Indexes(ctx context.Context, tx pgx.Tx) ([]Index, error) {
	var indexes []Index
	if err := pgxscan.Select(ctx, tx, &indexes, sqlIndexes, t.OID); err != nil {
		return nil, fmt.Errorf("catalog: indexes: %w", err)
	}
	return indexes, nil
}
