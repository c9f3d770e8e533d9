package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

func (v *verifier) queueTable(ctx context.Context) error {
	c := v.target.Columns
	needs := []columnSpec{
		{c.JobID, keys, "uuid primary key default gen_random_uuid()", reads},
		{c.State, labels, "text not null default 'ready'", updates},
		{c.Attempts, counts, "integer not null default 0", updates},
		{c.MaxAttempts, counts, "integer not null default 5", reads},
		{c.ScheduledAt, instants, "timestamptz not null default now()", updates},
		{c.LeaseOwner, nil, "text", updates},
		{c.LeaseUntil, instants, "timestamptz", updates},
		{c.JobKind, nil, "text not null default ''", reads},
		{c.LastError, texts, "text", updates},
	}
	needs = slices.DeleteFunc(needs, func(n columnSpec) bool { return n.name == "" })
	t, err := v.table(ctx, "queue", v.target.Queue, needs)
	if err != nil || t == nil {
		return err
	}
	v.queue = t
	v.nullableCounters(t)
	v.states(t)
	v.key(t)
	v.identity(t, "reset and move", severityError, false)
	if err := v.writes(ctx, t, v.queueWrites()...); err != nil || v.blocksQueries {
		return err
	}
	if err := v.statements(ctx, t, v.target.Writes...); err != nil || v.blocksQueries {
		return err
	}
	if t.Kind != "f" {
		if err := v.index(ctx, t); err != nil {
			return err
		}
	}
	return v.leases(ctx, t)
}

// queueWrites are what the reaper and the workers write into the queue.
func (v *verifier) queueWrites() []write {
	c, s := v.target.Columns, v.target.States
	return []write{
		{"reset", severityError, map[string]any{
			c.State: s.RetryWaiting, c.LastError: v.target.LastError,
			c.Attempts: varies, c.ScheduledAt: varies, c.LeaseOwner: nil, c.LeaseUntil: nil,
		}},
		{"move", severityError, map[string]any{
			c.State: s.DeadLetter, c.LastError: v.target.FinalError,
			c.Attempts: varies, c.LeaseOwner: nil, c.LeaseUntil: nil,
		}},
		{"lease", severityError, map[string]any{c.State: s.Leased}},
	}
}

// nullableCounters checks the columns that count tries. Of a view's columns the catalogs
// do not say whether they may be NULL.
func (v *verifier) nullableCounters(t *catalog.Table) {
	for _, counter := range []struct{ name, fill string }{
		{v.target.Columns.Attempts, "0"}, {v.target.Columns.MaxAttempts, "5"},
	} {
		column := t.Column(counter.name)
		if !t.Stored() || column == nil || column.NotNull {
			continue
		}
		fix := alter(t, counter.name, "set not null")
		if column.Generated == "" {
			fix = fmt.Sprintf("update %[1]s set %[2]s = %[3]s where %[2]s is null;\n%[4]s",
				t.SQL, quote(counter.name), counter.fill, fix)
		}
		v.warn("column_nullable", at(t, counter.name), fix,
			"The column may be NULL. NULL attempts count as 0, and a job with a NULL maximum is never moved.")
	}
}

// states checks whether an enum has the states.
func (v *verifier) states(t *catalog.Table) {
	column := t.Column(v.target.Columns.State)
	if column == nil || len(column.Enum) == 0 {
		return
	}
	s := v.target.States
	for _, state := range []string{s.Leased, s.RetryWaiting, s.DeadLetter} {
		if slices.Contains(column.Enum, state) {
			continue
		}
		label, _ := pgtext.Label(state) // its fault would have been New's
		v.blocksQueries = true
		v.error("state_missing", column.TypeSQL, fmt.Sprintf("alter type %s add value %s", column.TypeSQL, label),
			"The enum of the queue's states has no %s.", label)
	}
}

func (v *verifier) key(t *catalog.Table) {
	id := v.target.Columns.JobID
	if t.Column(id) == nil || t.HasKey(id) || !t.Stored() {
		return
	}
	columns := []string{quote(id)}
	for _, column := range t.Partition {
		if column != id {
			columns = append(columns, quote(column))
		}
	}
	v.error("key_missing", at(t, id),
		fmt.Sprintf("create unique index%s on %s (%s)", concurrently(t), t.SQL, strings.Join(columns, ", ")),
		"Nothing makes the id unique: jobs with the same id are settled as one, and finding one reads the whole table.")
}

// sqlLeases counts leased jobs that no reaper will settle, or not for a week.
// Served by job_queue_lease_until_idx.
const sqlLeases = `-- verify.rows
select count(*) filter (where ` + condEndless + `),
  count(*) filter (where ` + condInfinite + `),
  count(*) filter (where ` + condFar + `)
from {queue} q
where {state} = {leased}
  and ({lease_until} is null or {lease_until} > now() + interval '1 week')`

// Conditions of such leases.
const (
	condEndless  = `{lease_until} is null`
	condInfinite = `{lease_until} = 'infinity'`
	condFar      = `{lease_until} > now() + interval '1 week' and {lease_until} < 'infinity'`
)

// leases checks for leases that will not end, or not soon.
func (v *verifier) leases(ctx context.Context, t *catalog.Table) error {
	var endless, infinite, far int
	if err := v.tx.QueryRow(ctx, v.names.Replace(sqlLeases)).Scan(&endless, &infinite, &far); err != nil {
		return err
	}
	for _, kind := range []struct {
		n                        int
		code, message, condition string
	}{
		{endless, "lease_endless", "have a lease without an end, never stale", condEndless},
		{infinite, "lease_infinite", "have a lease until infinity, never stale", condInfinite},
		{far, "lease_far", "have a lease that ends more than a week from now, as if a clock were wrong", condFar},
	} {
		if kind.n > 0 {
			v.warn(kind.code, t.SQL, v.names.Replace("update {queue} set {lease_until} = now() + interval '1 hour' "+
				"where {state} = {leased} and "+kind.condition),
				"%d leased jobs %s. The fix gives their workers an hour.", kind.n, kind.message)
		}
	}
	return nil
}
