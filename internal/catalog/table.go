// Package catalog reads a table's definition: its columns and their types, its keys,
// constraints, indexes and policies, and the privileges of the current role.
//
// It reads only the system catalogs, locks nothing and needs no privilege.
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

// Table is the definition of a table.
type Table struct {
	SQL          string // the name that was given to Read, quoted
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
	Type          string // as in "timestamp with time zone"; for a domain, the type below it
	Base          string // Type for a cast that does not truncate
	Length        int    // of a character type with a length, else 0
	Enum          []string
	TypeSQL       string // the name of the column's own type, quoted, with its modifier
	NotNull       bool
	NotNullItself bool     // the column, not only its domain, is NOT NULL
	HasDefault    bool     // it has a default, is an identity column or is generated
	Generated     string   // "s" stored, "v" virtual, or empty
	Identity      bool     // generated always as identity
	Primary       bool     // part of the primary key
	HoldsJSON     bool     // json, also as an element or a field
	Privileges    []string // of the role: any of "select", "insert", "update"

	LockedSequences []string // sequences of the default that the role may not use, quoted
}

// Key is a valid unique index on columns, not a partial one. Its names are quoted.
type Key struct {
	Index      string // empty if each partition has its own index
	Constraint string // the constraint of the index, or empty
	Excludes   bool   // of an exclusion constraint, which no upsert can name
	Columns    []string
}

// Check is a CHECK constraint.
type Check struct {
	Name       string // quoted
	Expression string
	Columns    []string // that it uses
	Domain     string   // its domain, quoted, or empty
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

// Stored reports whether the table is a plain or a partitioned one, so that it can have
// an index.
func (t *Table) Stored() bool { return t.Kind == "r" || t.Kind == "p" }

// Column returns a column by name, or nil.
func (t *Table) Column(name string) *Column {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Columns[i]
}

// HasKey reports whether a unique index makes the column unique, at least within each
// partition.
func (t *Table) HasKey(column string) bool {
	more := func(other string) bool { return other != column && !slices.Contains(t.Partition, other) }
	return slices.ContainsFunc(t.Keys, func(key Key) bool {
		return !key.Excludes && slices.Contains(key.Columns, column) && !slices.ContainsFunc(key.Columns, more)
	})
}

// Read reads a table. It returns nil if the role can see no table of that name.
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

// parts reads the columns, keys, policies, constraints and indexes in one round trip.
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
