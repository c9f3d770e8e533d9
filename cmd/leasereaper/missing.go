package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// missingError says which tables are not there, instead of PostgreSQL's error.
type missingError struct {
	tables []string
	schema string // where tables without a schema would be
	err    error
}

// Error says what to do about it.
func (e *missingError) Error() string {
	be := "is no table "
	if len(e.tables) > 1 {
		be = "are no tables "
	}
	return "there " + be + strings.Join(e.tables, ", ") + e.schema +
		": leasereaper init creates what is missing, or name your own in " + fileName
}

// Unwrap returns PostgreSQL's error.
func (e *missingError) Unwrap() error { return e.err }

const undefinedTable = "42P01"

// explain says which of the mapped tables are missing, where an error comes from that.
func (t *tool) explain(ctx context.Context, err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != undefinedTable {
		return err
	}
	missing, schema, failed := missingTables(ctx, t.pool, t.queue.tables())
	if failed != nil || len(missing) == 0 {
		return err
	}
	return &missingError{missing, schema, err}
}

// sqlMissing finds those of some tables that are not there, in their order.
//
//	$1 tables  text[], quoted names
const sqlMissing = `-- leasereaper.missing
select i
from unnest($1::text[]) with ordinality x(name, i)
where to_regclass(name) is null
order by i`

// missingTables returns the names of tables that are not there, and words for where those
// without a schema would be.
func missingTables(
	ctx context.Context, db querier, tables []pgx.Identifier,
) (missing []string, schema string, err error) {
	quoted, plain := make([]string, len(tables)), false
	for i, table := range tables {
		quoted[i] = table.Sanitize()
	}
	indexes, err := collect[int](ctx, db, sqlMissing, quoted)
	if err != nil {
		return nil, "", err
	}
	for _, i := range indexes {
		missing = append(missing, strings.Join(tables[i-1], "."))
		plain = plain || len(tables[i-1]) == 1
	}
	if !plain {
		return missing, "", nil
	}
	names, err := collect[string](ctx, db, "select coalesce(current_schema(), '')")
	if err != nil {
		return nil, "", err
	}
	return missing, fmt.Sprintf(" in schema %q", names[0]), nil
}
