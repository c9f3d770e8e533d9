package verify

import (
	"context"
	"slices"
	"strings"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// sqlExplainClaim is the order in which a claim reads. Its plan shows whether an index
// has that order, and on which partitions.
//
//	$1 scope
const sqlExplainClaim = `-- verify.index
explain (format json, verbose)
select q.{job_id}
from {queue} q
where {stale}
order by {key}
limit 1`

// sqlExplainLeased reads as a claim does whose order no index can have. Its plan shows
// whether an index finds the leased rows.
//
//	$1 scope
const sqlExplainLeased = `-- verify.leased
explain (format json, verbose)
select q.{job_id}
from {queue} q
where {stale}`

// sqlExplainOthers reads jobs that are not leased. Its plan shows which partitions may have
// some.
const sqlExplainOthers = `-- verify.others
explain (format json, verbose)
select
from {queue} q
where not ({is_leased})`

// sqlOrderOnly leaves the planner no other plan than an index that has the order,
// where there is one.
const sqlOrderOnly = `-- verify.order_only
select set_config(name, 'off', true)
from unnest('{enable_seqscan,enable_bitmapscan,enable_sort}'::text[]) name`

// index asks the planner whether an index has the order of the claim, and checks
// whether the index holds leased rows alone. The ends of leases with a column of seconds
// have no order in an index; then it asks whether one finds the leased rows.
func (v *verifier) index(ctx context.Context, t *catalog.Table) error {
	if t.Kind == "f" { // nothing is known of the other server
		return nil
	}
	if _, err := v.tx.Exec(ctx, sqlOrderOnly); err != nil {
		return err
	}
	claim, served := sqlExplainClaim, func(p plan) bool { return !p.sorts }
	if v.target.Queue.LeaseSeconds != "" {
		claim, served = sqlExplainLeased, func(p plan) bool { return !p.filters }
	}
	plan, err := v.explain(ctx, claim, v.target.Scope)
	switch {
	case err != nil:
		return err
	case !served(plan):
		v.noIndex(t, "No index serves the claim, so every pass reads the whole queue.")
		return nil
	case !t.Stored(): // a view's indexes are those of other tables
		return nil
	case v.target.Queue.State == "": // a claim reads no row without a lease
		return nil
	case t.Kind == "p":
		if plan, err = v.explain(ctx, sqlExplainOthers); err != nil {
			return err
		}
	}
	return v.leasedOnly(ctx, t, plan.reads)
}

// noIndex reports that an index is missing. A view can have none.
func (v *verifier) noIndex(t *catalog.Table, message string, args ...any) {
	q, fix := v.target.Queue, ""
	leased := quote(q.LeaseUntil) + " is not null"
	if q.State != "" {
		label, _ := pgtext.Label(q.Leased) // its fault would have been New's
		leased = quote(q.State) + " = " + label
	}
	if t.Stored() {
		fix = v.names.Replace("create index"+concurrently(t)+" on {queue} ({lease_until}) where ") + leased
	}
	v.warn("index_missing", at(t, q.LeaseUntil), fix, message, args...)
}

// leasedOnly checks whether each table that the plan reads has an index in which a
// claim reads leased rows alone. A partition without other rows needs none.
func (v *verifier) leasedOnly(ctx context.Context, t *catalog.Table, reads []relation) error {
	wide, fits := map[relation]string{}, map[relation]bool{}
	for _, index := range t.Indexes {
		serves, alone, err := v.serves(ctx, t, index)
		if err != nil {
			return err
		}
		of := relation{index.Schema, index.Relation}
		fits[of] = fits[of] || alone
		if serves && !alone {
			wide[of] = index.Name
		}
	}
	for _, read := range reads {
		if wide[read] != "" && !fits[read] {
			v.noIndex(t, "The index %s also holds rows that are not leased: it grows with the finished jobs, "+
				"and a claim reads those that kept their lease's end. "+
				"The fix creates one of leased rows alone.", wide[read])
			break
		}
	}
	return nil
}

// serves reports whether an index serves the claim, and whether it does so with leased
// rows alone: by the state before the lease's end, or because its predicate is true of
// no row in another state. The server evaluates the predicate.
func (v *verifier) serves(ctx context.Context, t *catalog.Table, index catalog.Index) (serves, alone bool, err error) {
	q, first := v.target.Queue, index.Columns[0]
	if first == q.State {
		serves = q.LeaseSeconds != "" || len(index.Columns) > 1 && index.Columns[1] == q.LeaseUntil
		return serves, serves, nil
	}
	if index.Predicate != "" && (first == q.LeaseUntil || q.LeaseSeconds != "") {
		rows, states := v.unleased(t)
		alone, err = v.holds(ctx, "not coalesce(("+index.Predicate+"), false)", rows, states)
	}
	return first == q.LeaseUntil, alone, err
}

// unleased are rows in other states than the leased one, with a lease's end and
// without, as a subquery, and its $1. Other columns are NULL.
func (v *verifier) unleased(t *catalog.Table) (rows string, states []string) {
	q := v.target.Queue
	states = []string{q.RetryWaiting, q.DeadLetter, "a state that no queue has"}
	columns := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		sql := "null::" + column.Base
		switch column.Name {
		case q.State:
			sql = "s.state::" + column.Base
			if len(column.Enum) > 0 {
				states = slices.Clone(column.Enum)
			} else if slices.Contains(counts, column.Type) {
				states[2] = "-32768"
			}
		case q.LeaseUntil:
			sql = "e.lease_until::" + column.Base
		}
		columns[i] = sql + " as " + quote(column.Name)
	}
	return "select " + strings.Join(columns, ", ") + " from unnest($1::text[]) s(state), " +
			"(values (null::timestamptz), (now())) e(lease_until)",
		slices.DeleteFunc(states, func(state string) bool { return state == q.Leased })
}

// plan is what a query plan tells of how a query gets its rows.
type plan struct {
	sorts   bool
	filters bool // reads all rows of a table to find some
	reads   []relation
}

// relation is a table that a plan reads.
type relation struct{ schema, name string }

// node is a node of a plan, as EXPLAIN prints it.
type node struct {
	Type     string `json:"Node Type"`
	Parent   string `json:"Parent Relationship"`
	Schema   string `json:"Schema"`
	Relation string `json:"Relation Name"`
	Filter   string `json:"Filter"`
	Plans    []node `json:"Plans"`
}

// explain reads the plan of a query from its EXPLAIN.
func (v *verifier) explain(ctx context.Context, sql string, args ...any) (p plan, err error) {
	var roots []struct{ Plan node }
	if err := v.tx.QueryRow(ctx, v.names.Replace(sql), args...).Scan(&roots); err != nil {
		return p, err
	}
	for _, root := range roots {
		p.add(root.Plan)
	}
	return p, nil
}

// add adds a node and those below it, without the subqueries of policies.
func (p *plan) add(n node) {
	if n.Parent == "SubPlan" || n.Parent == "InitPlan" {
		return
	}
	p.sorts = p.sorts || n.Type == "Sort" || n.Type == "Incremental Sort"
	p.filters = p.filters || n.Type == "Seq Scan" && n.Filter != ""
	if read := (relation{n.Schema, n.Relation}); n.Relation != "" && !slices.Contains(p.reads, read) {
		p.reads = append(p.reads, read)
	}
	for _, child := range n.Plans {
		p.add(child)
	}
}
