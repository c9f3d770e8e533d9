package reaper

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// sqlLost counts leased jobs that no reaper will pick up, or not for a week.
// Served by job_queue_lease_until_idx.
const sqlLost = `-- verify.rows
select count(*) filter (where q.{lease_until} is null),
  count(*) filter (where q.{lease_until} = 'infinity'),
  count(*) filter (where q.{lease_until} < 'infinity')
from {queue} q
where q.{state} = {leased}
  and (q.{lease_until} is null or q.{lease_until} > now() + interval '1 week')`

// lost is a kind of lease that will not end, or not soon.
type lost struct {
	code, message string
	condition     string // over the lease's end
	n             int
}

// rows looks for leases that will not end.
func (v *verifier) rows(ctx context.Context) error {
	kinds := []*lost{
		{code: CodeLeaseEndless, message: "have a lease without an end, never stale", condition: "%s is null"},
		{code: CodeLeaseInfinite, message: "have a lease until infinity, never stale", condition: "%s = 'infinity'"},
		{
			code: CodeLeaseFar, message: "have a lease that ends more than a week from now, as if a clock were wrong",
			condition: "%[1]s > now() + interval '1 week' and %[1]s < 'infinity'",
		},
	}
	if err := v.tx.QueryRow(ctx, v.sql.lost).Scan(&kinds[0].n, &kinds[1].n, &kinds[2].n); err != nil {
		return err
	}
	until := pgx.Identifier{v.cfg.Queue.Columns.LeaseUntil}.Sanitize()
	for _, kind := range kinds {
		if kind.n == 0 {
			continue
		}
		v.add(Problem{
			Code: kind.code, Severity: SeverityWarning, Object: v.queue.Table,
			Message: fmt.Sprintf("%d leased jobs %s. The fix gives their workers an hour.", kind.n, kind.message),
			Fix: fmt.Sprintf("update %s set %s = now() + interval '1 hour' where %s and %s",
				v.queue.Table, until, v.sql.leased, fmt.Sprintf(kind.condition, until)),
		})
	}
	return nil
}
