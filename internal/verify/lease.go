package verify

import (
	"context"
	"strings"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/mapping"
)

// sqlLeases counts leased jobs that no reaper will reap, or not for a week.
// Served by job_queue_lease_until_idx.
const sqlLeases = `-- verify.rows
select count(*) filter (where ` + condEndless + `),
  count(*) filter (where ` + condInfinite + `),
  count(*) filter (where ` + condFar + `)
from {queue} q
where {is_leased}{only_columns}
  and ({no_end} or {key} > {key(}now() + {week}{)key})`

// Conditions of such leases. {no_end} is one that an index can serve where there is an
// index on the leases.
const (
	condEndless  = `{no_end}`
	condInfinite = `{end} = 'infinity'`
	condFar      = `{end} > now() + {week} and {end} < 'infinity'`
)

// sqlGiveAnHour makes such leases end in an hour.
const sqlGiveAnHour = `update {queue} q set {seconds}{lease_until} = {start(}now() + interval '1 hour'{)start} ` +
	`where {is_leased}{only_columns} and `

// leases checks for leases that will not end, or not soon.
func (v *verifier) leases(ctx context.Context, t *catalog.Table) error {
	in := v.leaseNames()
	var endless, infinite, far int
	if err := v.tx.QueryRow(ctx, in(sqlLeases)).Scan(&endless, &infinite, &far); err != nil {
		return err
	}
	for _, kind := range []struct {
		n                        int
		code, message, condition string
	}{
		{endless, "lease_endless", "have a lease without " + v.lacking() + ", never stale", condEndless},
		{infinite, "lease_infinite", "have a lease until infinity, never stale", condInfinite},
		{far, "lease_far", "have a lease that ends more than a week from now, as if a clock were wrong", condFar},
	} {
		if kind.n > 0 {
			v.warn(kind.code, t.SQL, in(sqlGiveAnHour+kind.condition),
				"%d leased jobs %s. The fix gives their workers an hour.", kind.n, kind.message)
		}
	}
	return nil
}

// leaseNames puts names into the statements over leases. A lease whose length is known
// is too long a week after it should have ended.
func (v *verifier) leaseNames() func(sql string) string {
	q, noEnd, week, seconds := v.target.Queue, "q.{lease_until} is null", "interval '1 week'", ""
	if q.LeaseSeconds != "" {
		noEnd, seconds = "{end} is null", "{to_leased}"
	}
	if q.LeaseLength > 0 {
		week = "interval '1 week " + mapping.Interval(q.LeaseLength) + "'"
	}
	own := strings.NewReplacer("{no_end}", noEnd, "{week}", week, "{seconds}", seconds)
	return func(sql string) string { return v.names.Replace(own.Replace(sql)) }
}

// lacking is what a lease lacks that never ends.
func (v *verifier) lacking() string {
	q := v.target.Queue
	switch {
	case q.LeaseSeconds != "":
		return "a start, or with a length that is NULL, negative, infinite or too large in " + quote(q.LeaseSeconds)
	case q.LeaseLength > 0:
		return "a start"
	}
	return "an end"
}
