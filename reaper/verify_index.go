package reaper

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

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
where ` + stale + `
order by q.{lease_until}
limit 1`

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
	plan, err := v.explain(ctx, v.sql.serves, v.scope)
	if err != nil {
		return err
	}
	if plan.sorts {
		v.noIndex(t, "No index serves the claim, so every pass reads the whole queue.")
		return nil
	}
	if !t.Stored() {
		return nil // a view's indexes are those of other tables
	}
	indexes, err := t.Indexes(ctx, v.tx)
	if err != nil {
		return err
	}
	return v.leasedOnly(ctx, t, plan, indexes)
}

// noIndex reports that an index is missing. A view can have none.
func (v *verifier) noIndex(t *catalog.Table, message string) {
	quoted := pgx.Identifier{v.cfg.Queue.Columns.LeaseUntil}.Sanitize()
	p := Problem{
		Code: CodeIndexMissing, Severity: SeverityWarning, Object: v.queue.Table + "." + quoted, Message: message,
	}
	if t.Stored() {
		p.Fix = fmt.Sprintf("create index%s on %s (%s) where %s", concurrently(t), v.queue.Table, quoted, v.sql.leased)
	}
	v.add(p)
}

// leasedOnly looks whether each table that the plan reads has an index that holds
// leased rows alone, or in which these stand together. A partition without other
// rows needs none.
func (v *verifier) leasedOnly(ctx context.Context, t *catalog.Table, plan *plan, indexes []catalog.Index) error {
	tables := plan.reads
	if t.Partitioned() {
		others, err := v.explain(ctx, "-- verify.others\nexplain (format json, verbose)\n"+
			"select\nfrom "+v.queue.Table+" q\nwhere not ("+v.sql.leased+")")
		if err != nil {
			return err
		}
		tables = others.reads
	}
	for _, table := range tables {
		name, err := v.wide(ctx, t, table, indexes)
		if err != nil {
			return err
		}
		if name != "" {
			v.noIndex(t, fmt.Sprintf("The index %s also holds rows that are not leased: it grows with the "+
				"finished jobs, and a claim reads those that kept their lease's end. "+
				"The fix makes one of leased rows alone.", name))
			return nil
		}
	}
	return nil
}

// wide returns an index that serves the claim on a table and holds other rows than
// leased ones too, or "" where there is a better one or none.
func (v *verifier) wide(
	ctx context.Context, t *catalog.Table, table pgTable, indexes []catalog.Index,
) (wide string, err error) {
	for _, index := range indexes {
		if (pgTable{index.Schema, index.Relation}) != table || !v.leads(index) {
			continue
		}
		if fits, err := v.fits(ctx, t, index); err != nil || fits {
			return "", err
		}
		wide = index.Name
	}
	return wide, nil
}

// leads reports whether an index begins with the lease's end, or with the state and
// then the lease's end.
func (v *verifier) leads(index catalog.Index) bool {
	return index.Columns[0] == v.cfg.Queue.Columns.LeaseUntil || v.byState(index)
}

// byState reports whether an index begins with the state, then the lease's end.
func (v *verifier) byState(index catalog.Index) bool {
	c := v.cfg.Queue.Columns
	return len(index.Columns) > 1 && index.Columns[0] == c.State && index.Columns[1] == c.LeaseUntil
}

// fits reports whether a claim reads leased rows alone in an index: by its
// columns, or because its predicate is true of no row in another state. The server
// evaluates the predicate.
func (v *verifier) fits(ctx context.Context, t *catalog.Table, index catalog.Index) (bool, error) {
	if v.byState(index) {
		return true, nil
	}
	if index.Predicate == "" {
		return false, nil
	}
	return v.holds(ctx, "not coalesce(("+index.Predicate+"), false)", v.unleased(t))
}

// unleased are rows in other states than the leased one, with a lease's end and
// without, as a subquery. Other columns are NULL.
func (v *verifier) unleased(t *catalog.Table) string {
	c, s := v.cfg.Queue.Columns, v.cfg.Queue.States
	others := []string{s.RetryWaiting, s.DeadLetter, "a state that no queue has"}
	var columns []string
	for i := range t.Columns {
		column := &t.Columns[i]
		name := pgx.Identifier{column.Name}.Sanitize()
		switch column.Name {
		case c.State:
			if len(column.Enum) > 0 {
				others = column.Enum
			}
			columns = append(columns, "s.state::"+column.Base+" as "+name)
		case c.LeaseUntil:
			columns = append(columns, "e.lease_until as "+name)
		default:
			columns = append(columns, "null::"+column.Base+" as "+name)
		}
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
