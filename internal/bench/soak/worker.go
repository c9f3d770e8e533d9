package soak

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// sqlClaim claims the jobs that have waited longest.
//
//	$1 owner     text
//	$2 lease     interval
//	$3 how many  bigint
const sqlClaim = `-- soak.claim
update job_queue
set state = 'leased', lease_owner = $1, lease_until = now() + $2::interval
where job_id = any(array(
    select job_id
    from job_queue
    where state in ('ready', 'retry_waiting') and scheduled_at <= now()
    order by scheduled_at
    limit $3::bigint
    for update skip locked
))
returning job_id`

// sqlRenew renews the leases of jobs.
//
//	$1 jobs   uuid[]
//	$2 owner  text
//	$3 lease  interval
const sqlRenew = `-- soak.renew
update job_queue
set lease_until = now() + $3::interval
where job_id = any($1) and lease_owner = $2 and state = 'leased'`

// sqlDone removes jobs that are done.
//
//	$1 jobs   uuid[]
//	$2 owner  text
const sqlDone = `-- soak.done
delete from job_queue
where job_id = any($1) and lease_owner = $2 and state = 'leased'`

// work is a worker. Some of its claims end in its death: it comes back when the leases
// have expired, and then tries to end what it had begun.
func (s *site) work(ctx context.Context, number int) error {
	if err := sleep(ctx, idle*time.Duration(number)/workers); err != nil { // they do not start together
		return err
	}
	for {
		owner, jobs, err := s.claim(ctx, number)
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			if err := sleep(ctx, idle); err != nil {
				return err
			}
			continue
		}
		if err := s.live(ctx, owner, jobs); err != nil {
			return err
		}
	}
}

// claim claims jobs as an owner that is new.
func (s *site) claim(ctx context.Context, number int) (owner string, jobs []pgtype.UUID, err error) {
	began := time.Now()
	owner = fmt.Sprintf("worker-%d-%d", number, began.UnixNano())
	rows, err := s.workers.Query(ctx, sqlClaim, owner, s.cfg.lease(), batch)
	if err != nil {
		return "", nil, err
	}
	jobs, err = pgx.CollectRows(rows, pgx.RowTo[pgtype.UUID])
	s.tally.claim(since(began))
	return owner, jobs, err
}

// live works at jobs, or dies while it does.
func (s *site) live(ctx context.Context, owner string, jobs []pgtype.UUID) error {
	n := int(s.claims.Add(1)) - 1
	dies, after := n%mortal == 0, n/mortal%(renewals+1)
	for renewed := range renewals {
		if dies && renewed == after {
			break
		}
		if err := sleep(ctx, s.cfg.renewal()); err != nil {
			return err
		}
		if _, err := s.workers.Exec(ctx, sqlRenew, jobs, owner, s.cfg.lease()); err != nil {
			return err
		}
	}
	rest := s.cfg.renewal() / 2
	if dies {
		rest = 2 * s.cfg.lease()
	}
	if err := sleep(ctx, rest); err != nil {
		return err
	}
	tag, err := s.workers.Exec(ctx, sqlDone, jobs, owner)
	s.tally.finish(int(tag.RowsAffected()), dies)
	return err
}
