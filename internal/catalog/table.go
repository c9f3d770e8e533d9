package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"
)

// Table is what the catalogs say of a table.
type Table struct {
	OID         uint32
	Schema      string
	Partitioned bool
	Usage       bool // the role may use the schema
	SelectAll   bool // the role may read every column
	RowSecurity bool // row-level security applies to the role
	Columns     []Column
	Keys        [][]string // the columns of each unique index that is whole and valid
	Partition   []string   // the columns of the partition key
	Policies    []Policy   // that apply to the role
}

// Column is a column of a table.
type Column struct {
	Name    string
	Type    string // as in "timestamp with time zone"; a domain's base type
	Length  int    // of a character type with one, else 0
	Enum    []string
	TypeSQL string // the type's own name, quoted
	NotNull bool
	Filled  bool // it has a default, an identity, or is generated
	Select  bool // the role may read it
	Insert  bool
	Update  bool
}

// Policy is a row-level security policy.
type Policy struct {
	Permissive bool
	Command    string // "*" for all
	Using      *string
	Check      *string
}

// Column returns a column by name, or nil.
func (t *Table) Column(name string) *Column {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Columns[i]
}

// HasKey reports whether a unique index makes the column unique, within its
// partition at least.
func (t *Table) HasKey(column string) bool {
	return slices.ContainsFunc(t.Keys, func(key []string) bool {
		return slices.Contains(key, column) && !slices.ContainsFunc(key, func(other string) bool {
			return other != column && !slices.Contains(t.Partition, other)
		})
	})
}

// HidesRows reports whether the policies keep rows from the role, or may: only a
// permissive policy for everything shows all of them.
func (t *Table) HidesRows() bool {
	if !t.RowSecurity {
		return false
	}
	whole := false
	for _, p := range t.Policies {
		if !p.Permissive {
			return true
		}
		whole = whole || p.Command == "*" && isTrue(p.Using) && (p.Check == nil || isTrue(p.Check))
	}
	return !whole
}

func isTrue(expression *string) bool { return expression != nil && *expression == "true" }

// Read reads a table, or returns nil when there is none that the role can see.
func Read(ctx context.Context, tx pgx.Tx, name pgx.Identifier) (*Table, error) {
	schema, relation := split(name)
	var t Table
	err := tx.QueryRow(ctx, sqlTable, schema, relation).Scan(
		&t.OID, &t.Schema, &t.Partitioned, &t.Usage, &t.SelectAll, &t.RowSecurity, &t.Partition)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // no table is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("catalog: table: %w", err)
	}
	if err := pgxscan.Select(ctx, tx, &t.Columns, sqlColumns, t.OID); err != nil {
		return nil, fmt.Errorf("catalog: columns: %w", err)
	}
	if err := pgxscan.Select(ctx, tx, &t.Keys, sqlKeys, t.OID); err != nil {
		return nil, fmt.Errorf("catalog: keys: %w", err)
	}
	if err := pgxscan.Select(ctx, tx, &t.Policies, sqlPolicies, t.OID); err != nil {
		return nil, fmt.Errorf("catalog: policies: %w", err)
	}
	return &t, nil
}

// split returns the schema, NULL for the search path, and the name.
func split(name pgx.Identifier) (schema *string, relation string) {
	if len(name) == 2 {
		return &name[0], name[1]
	}
	return nil, name[0]
}
