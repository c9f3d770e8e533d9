package verify

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/mapping"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

func (v *verifier) queueTable(ctx context.Context) error {
	t, err := v.table(ctx, "queue", v.target.Queue.Table, v.queueColumns())
	if err != nil || t == nil {
		return err
	}
	v.queue = t
	v.remote(t, "An apply")
	v.wholeRows(t)
	v.nullableCounters(t)
	v.states(t)
	v.setTimes(t)
	v.key(t)
	v.identity(t, "reset and move", severityError, false)
	if err := v.writes(ctx, t, append(v.queueWrites(), v.requeue()...)...); err != nil || v.blocksQueries {
		return err
	}
	if err := v.statements(ctx, t, v.target.Writes...); err != nil || v.blocksQueries {
		return err
	}
	for _, check := range []func(context.Context, *catalog.Table) error{v.markDefaults, v.keyIndex, v.index, v.leases} {
		if err := check(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// wholeRows checks the privilege that is needed to copy whole rows, and to find those of
// a plain table by their addresses.
func (v *verifier) wholeRows(t *catalog.Table) {
	if needed := v.target.Letters != nil || t.Kind == "r"; needed && !t.SelectAll {
		v.lacks(t, "select")
	}
}

// queueColumns are the columns that the queue needs, with those of the sets.
func (v *verifier) queueColumns() []columnSpec {
	q, time := v.target.Queue, v.timeType()
	needs := []columnSpec{
		{q.JobID, keys, "uuid primary key default gen_random_uuid()", reads},
		{q.State, stateTypes(q), "text not null default 'ready'", reads},
		{q.Attempts, counts, "integer not null default 0", reads},
		{q.MaxAttempts, counts, "integer not null default 5", reads},
		{q.ScheduledAt, []string{time}, time + " not null default now()", reads},
		{q.LeaseOwner, nil, "text", reads},
		{q.LeaseUntil, []string{time}, time, reads},
		{q.JobKind, nil, "text not null default ''", reads},
		{q.LastError, texts, "text", reads},
		{q.LeaseSeconds, lengths, "integer not null default 3600", reads},
		{q.LostLeases, counts, "integer not null default 0", reads},
	}
	needs = slices.DeleteFunc(needs, func(n columnSpec) bool { return n.name == "" })
	needs = v.setColumns(needs)
	for _, w := range v.queueWrites() {
		for i, n := range needs {
			if _, written := w.values[n.name]; written {
				needs[i].uses += ", " + updates
			}
		}
	}
	return needs
}

// timeType is the type of the queue's times.
func (v *verifier) timeType() string {
	if v.target.Queue.TimesInUTC {
		return zoneless
	}
	return zoned
}

// stateTypes are the types of a column of states, which may be called by integers.
func stateTypes(q mapping.Queue) []string {
	for _, state := range []string{q.Leased, q.RetryWaiting, q.DeadLetter} {
		if _, err := strconv.ParseInt(state, 10, 64); err != nil {
			return labels
		}
	}
	return append(slices.Clone(labels), counts...)
}

// queueWrites are what the reaper and the workers write into the queue.
func (v *verifier) queueWrites() []write {
	q := v.target.Queue
	reset := v.ending(q.RetryWaiting, v.target.LastError, q.OnReset)
	reset[q.ScheduledAt] = varies
	if q.CountsAtClaim && q.LostLeases != "" {
		reset[q.Attempts] = varies // the attempt of the claim is given back
	}
	lease := map[string]any{q.State: q.Leased, q.LeaseUntil: varies}
	delete(lease, "")
	return []write{
		{"reset", severityError, reset},
		{"move", severityError, v.ending(q.DeadLetter, v.target.FinalError, q.OnMove)},
		{"lease", severityError, lease},
	}
}

// requeue is what a redrive writes into the queue. For that the reaper's role needs no
// privilege.
func (v *verifier) requeue() (writes []write) {
	if !v.target.Redrives {
		return nil
	}
	q := v.target.Queue
	values := v.ending(q.RetryWaiting, "", q.OnReset)
	for _, counter := range []string{q.Attempts, q.LostLeases} {
		values[counter] = "0"
	}
	values[q.LastError] = nil
	delete(values, "")
	return []write{{"redrive", severityWarning, values}}
}

// ending is what an update writes that ends a lease, with the columns of a set.
func (v *verifier) ending(state, reason string, set map[string]any) map[string]any {
	q := v.target.Queue
	values := map[string]any{q.State: state, q.LastError: reason, q.LeaseOwner: nil, q.LeaseUntil: nil}
	if q.Step() > 0 {
		values[q.Counter()] = varies
	}
	for column, value := range set {
		switch value {
		case mapping.Keep:
			delete(values, column)
		case mapping.Now:
			values[column] = varies
		case nil:
			values[column] = nil
		default:
			values[column] = fmt.Sprint(value)
		}
	}
	delete(values, "") // columns that the queue does not have
	return values
}

// nullableCounters checks the columns that count tries. Of a view's columns the catalogs
// do not say whether they may be NULL.
func (v *verifier) nullableCounters(t *catalog.Table) {
	q := v.target.Queue
	for _, counter := range []struct {
		name, fill, message string
		harmless            bool
	}{
		{q.Attempts, "0", "NULL attempts count as 0.", false},
		{q.MaxAttempts, "5", "A job with a NULL maximum is never moved.", q.Maximum > 0 || q.LostLeases != ""},
	} {
		column := t.Column(counter.name)
		if !t.Stored() || column == nil || column.NotNull || counter.harmless {
			continue
		}
		fix := alter(t, counter.name, "set not null")
		if column.Generated == "" {
			fix = fmt.Sprintf("update %[1]s set %[2]s = %[3]s where %[2]s is null;\n%[4]s",
				t.SQL, quote(counter.name), counter.fill, fix)
		}
		v.warn("column_nullable", at(t, counter.name), fix,
			"The column may be NULL. %s", counter.message)
	}
}

// states checks whether an enum has the states.
func (v *verifier) states(t *catalog.Table) {
	column := t.Column(v.target.Queue.State)
	if column == nil || len(column.Enum) == 0 {
		return
	}
	q := v.target.Queue
	for _, state := range []string{q.Leased, q.RetryWaiting, q.DeadLetter} {
		if slices.Contains(column.Enum, state) {
			continue
		}
		label, _ := pgtext.Label(state) // its fault would have been New's
		v.blocksQueries = true
		v.error("state_missing", column.TypeSQL, fmt.Sprintf("alter type %s add value %s", column.TypeSQL, label),
			"The enum of the queue's states has no %s.", label)
	}
}
