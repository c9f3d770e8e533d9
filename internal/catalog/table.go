// Package catalog reads what PostgreSQL knows of a table: its columns and their
// types, its keys and policies, and what the current role may do with it.
//
// It reads the system catalogs alone, locks nothing and needs no privilege. What
// it returns is for one moment.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Table is what the catalogs say of a table.
type Table struct {
	SQL          string // the name that it was read by, quoted
	OID          uint32
	Schema       string
	Kind         string // "r" a table, "p" a partitioned one, "v" a view, "m" a materialized one, "f" a foreign table
	Usage        bool   // the role may use the schema
	SelectAll    bool   // the role may read every column
	RowSecurity  bool   // row-level security applies to the role
	Columns      []Column
	Keys         []Key
	Partition    []string // the columns of the partition key
	Policies     []Policy // that apply to the role
	Checks       []Check
	Unidentified []Unidentified
	Indexes      []Index // also its partitions'
}

// Column is a column of a table.
type Column struct {
	Name          string
	Type          string // as in "timestamp with time zone"; the one below a domain
	Base          string // Type for a cast, which does not cut what is cast
	Length        int    // of a character type with one, else 0
	Enum          []string
	TypeSQL       string // the type's own name, quoted, with its modifier
	NotNull       bool
	NotNullItself bool     // NotNull, and it is not only its domain's
	HasDefault    bool     // or an identity, or it is generated
	Generated     string   // "s" stored, "v" virtual, or empty
	Identity      bool     // generated always as identity
	Primary       bool     // part of the primary key
	HoldsJSON     bool     // json, also as an element or a field
	Privileges    []string // of the role: any of "select", "insert", "update"

	LockedSequences []string // of the default, quoted, that the role may not use
}

// Key is a unique index that is whole and valid. Its names are quoted.
type Key struct {
	Index      string // empty: each partition has one of its own
	Constraint string // that the index belongs to, or empty
	Excludes   bool   // of an exclusion constraint, which no upsert takes for a key
	Columns    []string
}

// Check is a CHECK constraint.
type Check struct {
	Name       string // quoted
	Expression string
	Columns    []string // that it is about
	Domain     string   // the domain that it belongs to, quoted, or empty
}

// Index is a valid B-tree index of a table or of a partition.
type Index struct {
	Schema, Relation string // of the table
	Name             string // quoted
	Columns          []string
	Predicate        string // of a partial index, else empty
}

// Unidentified is a table whose changes are published without a replica identity.
// PostgreSQL rejects these changes.
type Unidentified struct {
	Name             string // quoted
	Keyed            bool   // it has a primary key that could be the identity
	Updates, Deletes bool   // what is published
}

// Stored reports whether the table's rows are its own or its partitions', so that
// an index can be made on it.
func (t *Table) Stored() bool { return t.Kind == "r" || t.Kind == "p" }

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
	more := func(other string) bool { return other != column && !slices.Contains(t.Partition, other) }
	return slices.ContainsFunc(t.Keys, func(key Key) bool {
		return !key.Excludes && slices.Contains(key.Columns, column) && !slices.ContainsFunc(key.Columns, more)
	})
}

// Read reads a table, or returns nil when there is none that the role can see.
func Read(ctx context.Context, tx pgx.Tx, name pgx.Identifier) (*Table, error) {
	t := Table{SQL: name.Sanitize()}
	err := tx.QueryRow(ctx, sqlTable, pgtext.Parts(name)...).Scan(
		&t.OID, &t.Schema, &t.Kind, &t.Usage, &t.SelectAll, &t.RowSecurity, &t.Partition)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // no table is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("catalog: table: %w", err)
	}
	if err := t.parts(ctx, tx); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	return &t, nil
}

// parts reads the rest of a table, in one exchange.
func (t *Table) parts(ctx context.Context, tx pgx.Tx) error {
	var b pgx.Batch
	for _, part := range []struct {
		sql  string
		into any
	}{
		{sqlColumns, &t.Columns},
		{sqlKeys, &t.Keys},
		{sqlPolicies, &t.Policies},
		{sqlChecks, &t.Checks},
		{sqlUnidentified, &t.Unidentified},
		{sqlIndexes, &t.Indexes},
	} {
		b.Queue(part.sql, t.OID).Query(func(rows pgx.Rows) error { return pgxscan.ScanAll(part.into, rows) })
	}
	return tx.SendBatch(ctx, &b).Close()
}
