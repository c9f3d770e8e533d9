package verify

import (
	"fmt"
	"maps"
	"slices"

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
