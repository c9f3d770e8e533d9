package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// columnSpec is what an apply expects of a column.
type columnSpec struct {
	name       string
	types      []string // any of these; empty: any type
	definition string   // of the column where it is to be added
	uses       string   // the privileges that the role needs
}

// Uses of a column.
const (
	noPrivileges = ""             // an apply does without the column
	locks        = "select, lock" // a policy may keep the role from locking a row
	reads        = "select"
	inserts      = "insert"
	updates      = "update"
)

// Types of times.
const (
	zoned    = "timestamp with time zone"
	zoneless = "timestamp without time zone"
)

func isTime(typeSQL string) bool { return typeSQL == zoned || typeSQL == zoneless }

// enum stands for the type of any column with labels.
const enum = "enum"

// Types as the catalog names them, and what the columns are called after.
var (
	texts     = []string{"text", "character varying", "character", "citext", "name"}
	counts    = []string{"integer", "bigint", "smallint"}
	lengths   = append(slices.Clone(counts), "numeric", "double precision", "real")
	instants  = []string{zoned}
	unpadded  = slices.DeleteFunc(slices.Clone(texts), func(name string) bool { return name == "character" })
	boolTypes = append([]string{"boolean", "jsonb", "json"}, labels...)
	labels    = append(slices.Clone(texts), enum)
	keys      = append([]string{"uuid", "bigint", "integer", "smallint", "numeric"}, texts...)
)

// table checks a table, its columns and what the role may do with them, and
// returns it, or nil when it does not exist.
func (v *verifier) table(
	ctx context.Context, what string, name pgx.Identifier, needs []columnSpec,
) (*catalog.Table, error) {
	t, err := catalog.Read(ctx, v.tx, name)
	if err != nil {
		return nil, err
	}
	if t == nil {
		v.error("table_missing", name.Sanitize(), create(name, needs),
			"The %s does not exist, or is not on the search path of this connection.", what)
		return nil, nil //nolint:nilnil // no table is an answer
	}
	v.blocksQueries = !t.Usage
	if !t.Usage {
		v.error("privilege_missing", t.SQL, fmt.Sprintf("grant usage on schema %s to %s", quote(t.Schema), v.role),
			"The role may not use the schema of the %s.", what)
	}
	for _, n := range needs {
		if n.uses != noPrivileges {
			v.column(t, n)
		}
	}
	v.privileges(t, needs)
	return t, nil
}

// create is the statement that makes a table of the needed columns.
func create(name pgx.Identifier, needs []columnSpec) string {
	lines := make([]string, len(needs))
	for i, n := range needs {
		lines[i] = "  " + quote(n.name) + " " + n.definition
	}
	return fmt.Sprintf("create table %s (\n%s\n)", name.Sanitize(), strings.Join(lines, ",\n"))
}

func (v *verifier) column(t *catalog.Table, n columnSpec) {
	switch column := t.Column(n.name); {
	case column == nil:
		v.blocksQueries = true
		v.error("column_missing", at(t, n.name),
			unlessView(t, fmt.Sprintf("alter table %s add column %s %s", t.SQL, quote(n.name), n.definition)),
			"The column does not exist.")
	case len(n.types) > 0 && !slices.Contains(n.types, typeOf(column)):
		v.blocksQueries = true
		v.error("column_type", at(t, n.name), retype(t, n.name, n.types[0]),
			"The column is of type %s and should be of type %s.%s", column.Type, n.types[0], v.hint(column, n))
	}
}

// hint names the other way out for a time with a zone, or without one.
func (v *verifier) hint(column *catalog.Column, n columnSpec) string {
	switch want := n.types[0]; {
	case want == zoned && column.Type == zoneless:
		return " If it holds UTC, set Table.TimesInUTC instead."
	case want == zoneless && column.Type == zoned:
		return " Table.TimesInUTC is for columns without a time zone."
	}
	return ""
}

// typeOf is the type of a column for a list of types.
func typeOf(column *catalog.Column) string {
	if len(column.Enum) > 0 {
		return enum
	}
	return column.Type
}

// privileges reports, for each privilege, the columns that the role lacks it on.
func (v *verifier) privileges(t *catalog.Table, needs []columnSpec) {
	var used []string
	for _, privilege := range []string{"select", "insert", "update", "lock"} {
		var columns, missing []string
		for _, n := range needs {
			if column := t.Column(n.name); column != nil && strings.Contains(n.uses, privilege) {
				columns = append(columns, n.name)
				if privilege != "lock" && !slices.Contains(column.Privileges, privilege) {
					missing = append(missing, quote(n.name))
				}
			}
		}
		if len(columns) > 0 {
			used = append(used, privilege)
		}
		if len(missing) > 0 {
			v.blocksQueries = v.blocksQueries || privilege == "select"
			v.lacks(t, fmt.Sprintf("%s (%s)", privilege, strings.Join(missing, ", ")))
		}
	}
	v.policies(t, used)
}

// lacks reports a privilege that the role lacks on a table.
func (v *verifier) lacks(t *catalog.Table, privilege string) {
	v.error("privilege_missing", t.SQL, fmt.Sprintf("grant %s on %s to %s", privilege, t.SQL, v.role),
		"The role %s lacks %s.", v.role, privilege)
}

// policies checks whether row-level security lets the role do with every row what
// it does with the table. A restrictive policy is reported alone: the others count
// once it lets the rows through.
func (v *verifier) policies(t *catalog.Table, privileges []string) {
	switch hides, by := t.HidesRows(privileges, v.roleLiteral); {
	case by != nil:
		v.error("row_security", t.SQL,
			fmt.Sprintf("alter policy %s on %s%s", by.Name, t.SQL, by.Exempt(v.roleLiteral)),
			"Row-level security may hide rows from the role: the restrictive policy %s applies to it. "+
				"No further policy can undo that. The fix exempts the role from this one.", by.Name)
	case hides:
		v.error("row_security", t.SQL,
			fmt.Sprintf("create policy leasereaper on %s to %s using (true) with check (true)", t.SQL, v.role),
			"Row-level security may hide rows from the role: no policy lets it read and write all of them.")
	}
}

// identity checks whether PostgreSQL takes updates of the table, and deletes where
// the library makes some: of a published table it must know how to name a row.
func (v *verifier) identity(t *catalog.Table, act, severity string, deletes bool) {
	var tables, fixes []string
	for _, u := range t.Unidentified {
		if !u.Updates && (!deletes || !u.Deletes) {
			continue
		}
		identity := "full"
		if u.Keyed {
			identity = "default" // the primary key
		}
		tables = append(tables, u.Name)
		fixes = append(fixes, fmt.Sprintf("alter table %s replica identity %s", u.Name, identity))
	}
	if len(tables) > 0 {
		v.add(severity, "replica_identity", t.SQL, strings.Join(fixes, ";\n"),
			"A publication includes %s, without a replica identity: every %s fails.", strings.Join(tables, ", "), act)
	}
}

// concurrently spares a plain table the lock; PostgreSQL has no such thing for a
// partitioned one.
func concurrently(t *catalog.Table) string {
	if t.Kind == "p" {
		return ""
	}
	return " concurrently"
}
