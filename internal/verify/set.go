package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/mapping"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// setColumns adds the columns of the sets to those that the queue needs.
func (v *verifier) setColumns(needs []columnSpec) []columnSpec {
	q := v.target.Queue
	for _, set := range []struct {
		values map[string]any
		uses   string
	}{{q.OnReset, noPrivileges}, {q.OnMove, noPrivileges}, {q.Only, reads}} {
		for _, column := range slices.Sorted(maps.Keys(set.values)) {
			i := slices.IndexFunc(needs, func(n columnSpec) bool { return n.name == column })
			if i < 0 {
				i = len(needs)
				needs = append(needs, columnSpec{name: column, definition: v.setDefinition(column)})
			}
			needs[i].uses += set.uses
		}
	}
	return needs
}

// setDefinition is a column that can hold the values that sets give it. By default it is
// one of the reaper's.
func (v *verifier) setDefinition(column string) string {
	q, definition := v.target.Queue, "text"
	for _, set := range []map[string]any{q.OnReset, q.OnMove, q.Only} {
		switch set[column].(type) {
		case nil, string:
		case bool:
			definition = "boolean"
		case mapping.Special:
			definition = v.timeType()
		default:
			definition = "bigint"
		}
	}
	if value := q.Only[column]; value != nil {
		definition += " default " + pgtext.Literal(fmt.Sprint(value))
	}
	return definition
}

// setTimes checks the columns that sets give the time. One of the other sort takes it,
// and is off by the zone of the session.
func (v *verifier) setTimes(t *catalog.Table) {
	q, want := v.target.Queue, v.timeType()
	for i := range t.Columns {
		column := &t.Columns[i]
		written := q.OnReset[column.Name] == mapping.Now || q.OnMove[column.Name] == mapping.Now
		if written && isTime(column.Type) && column.Type != want {
			v.error("column_type", at(t, column.Name), retype(t, column.Name, want),
				"The column is of type %s, and the time is written to it as %s: it is off by the session's zone.",
				column.Type, want)
		}
	}
}

// sqlDefaults reads the defaults of columns, as SQL.
//
//	$1 table    text, quoted
//	$2 columns  text[]
const sqlDefaults = `-- verify.defaults
select a.attname::text, pg_get_expr(d.adbin, d.adrelid)
from pg_attrdef d
join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
where d.adrelid = $1::text::regclass
  and a.attname = any($2::text[])`

// markDefaults checks that free rows do not have all that marks a dead job's row where there
// are no states: by default, or since a time is never NULL. They would be listed,
// redriven and purged as dead ones.
func (v *verifier) markDefaults(ctx context.Context, t *catalog.Table) error {
	q := v.target.Queue
	marks := slices.DeleteFunc(slices.Sorted(maps.Keys(q.OnMove)), func(c string) bool { return !q.Marks(c) })
	if q.State != "" || len(marks) == 0 {
		return nil
	}
	rows, err := v.tx.Query(ctx, sqlDefaults, t.SQL, marks)
	if err != nil {
		return err
	}
	defaults := map[string]string{}
	var column, expression string
	if _, err := pgx.ForEachRow(rows, []any{&column, &expression}, func() error {
		defaults[column] = expression
		return nil
	}); err != nil {
		return err
	}
	for _, column := range marks {
		isTime := q.OnMove[column] == mapping.Now
		isSet := slices.ContainsFunc(t.Columns, func(c catalog.Column) bool { return c.Name == column && c.NotNull })
		if met := isTime && isSet || isDefault(defaults[column], q.OnMove[column]); !met {
			return nil
		}
	}
	v.error("mark_is_default", at(t, marks[0]), "",
		"A move writes what free rows may have, by default or since the column is never NULL: they count as dead.")
	return nil
}

// isDefault reports whether a default gives a value of a set. It knows constants, and
// the functions of the time.
func isDefault(expression string, value any) bool {
	if value == mapping.Now {
		return strings.Contains(strings.ToLower(expression), "now()") || strings.HasPrefix(expression, "CURRENT_")
	}
	constant, _, _ := strings.Cut(expression, "::")
	constant = strings.ReplaceAll(strings.Trim(constant, "'"), "''", "'")
	return constant == fmt.Sprint(value)
}
