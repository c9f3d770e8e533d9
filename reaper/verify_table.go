package reaper

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// need is what an apply expects of a column.
type need struct {
	name       string
	types      []string // any of these; empty: any type
	definition string   // of the column where it is to be added
	privileges []string // what the role does with it; see optional
}

// optional marks a column that an apply does without.
var optional []string

// Types as the catalog names them, and what the columns are called after.
var (
	texts    = []string{"text", "character varying", "character", "citext"}
	counts   = []string{"integer", "bigint", "smallint"}
	instants = []string{"timestamp with time zone"}
	words    = append([]string{"boolean", "jsonb", "json"}, texts...)
	keys     = append([]string{"uuid", "bigint", "integer", "smallint", "numeric"}, texts...)
)

// table looks at a table and its columns, and returns it, or nil when it is not
// there.
func (v *verifier) table(
	ctx context.Context, what string, name pgx.Identifier, needs []need,
) (*catalog.Table, error) {
	object := name.Sanitize()
	t, err := catalog.Read(ctx, v.tx, name)
	if err != nil {
		return nil, err
	}
	if t == nil {
		v.add(Problem{
			Code: CodeTableMissing, Object: object,
			Message: "The " + what + " is not there, or not on the search path of this connection.",
			Fix:     create(object, needs),
		})
		return nil, nil //nolint:nilnil // no table is an answer
	}
	if !t.Usage {
		v.add(Problem{
			Code: CodePrivilegeMissing, Object: object,
			Message: "The role may not use the schema of the " + what + ".",
			Fix:     fmt.Sprintf("grant usage on schema %s to %s", pgx.Identifier{t.Schema}.Sanitize(), v.role),
		})
	}
	for _, n := range needs {
		if len(n.privileges) > 0 {
			v.column(t, object, n)
		}
	}
	v.privileges(t, object, needs)
	v.policies(t, object, needs)
	return t, nil
}

// create is the statement that makes a table of the needed columns.
func create(object string, needs []need) string {
	lines := make([]string, len(needs))
	for i, n := range needs {
		lines[i] = "  " + pgx.Identifier{n.name}.Sanitize() + " " + n.definition
	}
	return fmt.Sprintf("create table %s (\n%s\n)", object, strings.Join(lines, ",\n"))
}

func (v *verifier) column(t *catalog.Table, object string, n need) {
	quoted := pgx.Identifier{n.name}.Sanitize()
	column := t.Column(n.name)
	switch {
	case column == nil:
		v.add(Problem{
			Code: CodeColumnMissing, Object: object + "." + quoted, Message: "The column is not there.",
			Fix: fmt.Sprintf("alter table %s add column %s %s", object, quoted, n.definition),
		})
	case len(n.types) > 0 && len(column.Enum) == 0 && !slices.Contains(n.types, column.Type):
		v.add(Problem{
			Code: CodeColumnType, Object: object + "." + quoted,
			Message: fmt.Sprintf("The column is a %s and should be a %s.", column.Type, n.types[0]),
			Fix:     retype(object, quoted, n.types[0]),
		})
	}
}

// retype is the statement that gives a column another type.
func retype(object, column, typeSQL string) string {
	return fmt.Sprintf("alter table %s alter column %s type %s using %s::%s", object, column, typeSQL, column, typeSQL)
}

// privileges reports, for each privilege, the columns that the role lacks it on.
func (v *verifier) privileges(t *catalog.Table, object string, needs []need) {
	for _, privilege := range []string{"select", "insert", "update"} {
		var missing []string
		for _, n := range needs {
			column := t.Column(n.name)
			if column != nil && slices.Contains(n.privileges, privilege) && !may(column, privilege) {
				missing = append(missing, pgx.Identifier{n.name}.Sanitize())
			}
		}
		if len(missing) > 0 {
			v.lacks(object, fmt.Sprintf("%s (%s)", privilege, strings.Join(missing, ", ")))
		}
	}
}

// lacks reports a privilege that the role lacks on a table.
func (v *verifier) lacks(object, privilege string) {
	v.add(Problem{
		Code: CodePrivilegeMissing, Object: object,
		Message: fmt.Sprintf("The role %s lacks %s.", v.role, privilege),
		Fix:     fmt.Sprintf("grant %s on %s to %s", privilege, object, v.role),
	})
}

func may(column *catalog.Column, privilege string) bool {
	switch privilege {
	case "insert":
		return column.Insert
	case "update":
		return column.Update
	}
	return column.Select
}
