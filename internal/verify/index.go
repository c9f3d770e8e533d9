package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// sqlServes is the order in which a claim reads. Its plan shows whether an index
// has that order, and on which partitions.
//
//	$1 scope
const sqlServes = `-- verify.index
explain (format json, verbose)
select q.{job_id}
from {queue} q
where {stale}
order by q.{lease_until}
limit 1`

// sqlOthers reads jobs that are not leased. Its plan shows which partitions may have
// some.
const sqlOthers = `-- verify.others
explain (format json, verbose)
select
from {queue} q
where not ({state} = {leased})`

// sqlOrderOnly leaves the planner no other plan than an index that has the order,
// where there is one.
const sqlOrderOnly = `-- verify.order_only
select set_config(name, 'off', true)
from unnest('{enable_seqscan,enable_bitmapscan,enable_sort}'::text[]) name`

// index asks the planner whether an index has the order of the claim, and looks
// whether the index holds leased rows alone.
func (v *verifier) index(ctx context.Context, t *catalog.Table) error {
	if _, err := v.tx.Exec(ctx, sqlOrderOnly); err != nil {
		return err
	}
	plan, err := v.explain(ctx, sqlServes, v.target.Scope)
	switch {
	case err != nil:
		return err
	case plan.sorts:
		v.noIndex(t, "No index serves the claim, so every pass reads the whole queue.")
		return nil
	case !t.Stored(): // a view's indexes are those of other tables
		return nil
	}
	return v.leasedOnly(ctx, t, plan)
}

// noIndex reports that an index is missing. A view can have none.
func (v *verifier) noIndex(t *catalog.Table, message string, args ...any) {
	fix := ""
	if t.Stored() {
		fix = v.names.Replace("create index" + concurrently(t) + " on {queue} ({lease_until}) where {state} = {leased}")
	}
	v.warn("index_missing", at(t, v.target.Columns.LeaseUntil), fix, message, args...)
}

// leasedOnly looks whether each table that the plan reads has an index that holds
// leased rows alone, or in which these stand together. A partition without other
// rows needs none.
func (v *verifier) leasedOnly(ctx context.Context, t *catalog.Table, plan *plan) (err error) {
	if t.Partitioned() {
		if plan, err = v.explain(ctx, sqlOthers); err != nil {
			return err
		}
	}
	for _, read := range plan.reads {
		name, err := v.wide(ctx, t, read)
		if err != nil {
			return err
		}
		if name != "" {
			v.noIndex(t, "The index %s also holds rows that are not leased: it grows with the finished jobs, "+
				"and a claim reads those that kept their lease's end. The fix makes one of leased rows alone.", name)
			return nil
		}
	}
	return nil
}

// wide returns an index that serves the claim on a table and holds other rows than
// leased ones too, or "" where there is a better one or none. An index serves that
// begins with the lease's end; one with the state before it holds the leased rows
// together. The predicate of another must be true of no row in another state, which
// the server evaluates.
func (v *verifier) wide(ctx context.Context, t *catalog.Table, read relation) (wide string, err error) {
	c := v.target.Columns
	others := v.unleased(t)
	for _, index := range t.Indexes {
		if (relation{index.Schema, index.Relation}) != read {
			continue
		}
		switch first := index.Columns[0]; {
		case first == c.State && len(index.Columns) > 1 && index.Columns[1] == c.LeaseUntil:
			return "", nil
		case first != c.LeaseUntil:
			continue
		case index.Predicate != "":
			leasedOnly, err := v.holds(ctx, "not coalesce(("+index.Predicate+"), false)", others)
			if err != nil || leasedOnly {
				return "", err
			}
		}
		wide = index.Name
	}
	return wide, nil
}

// unleased are rows in other states than the leased one, with a lease's end and
// without, as a subquery. Other columns are NULL.
func (v *verifier) unleased(t *catalog.Table) string {
	c, s := v.target.Columns, v.target.States
	others := []string{s.RetryWaiting, s.DeadLetter, "a state that no queue has"}
	columns := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		sql := "null::" + column.Base
		switch column.Name {
		case c.State:
			sql = "s.state::" + column.Base
			if len(column.Enum) > 0 {
				others = column.Enum
			}
		case c.LeaseUntil:
			sql = "e.lease_until"
		}
		columns[i] = sql + " as " + quote(column.Name)
	}
	var states []string
	for _, state := range others {
		if label, err := pgtext.Label(state); err == nil && state != s.Leased {
			states = append(states, label)
		}
	}
	return fmt.Sprintf("select %s from unnest(array[%s]::text[]) s(state), "+
		"(values (null::timestamptz), (now())) e(lease_until)", strings.Join(columns, ", "), strings.Join(states, ", "))
}
