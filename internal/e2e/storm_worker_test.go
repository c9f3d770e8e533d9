package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The statements of workers. Each also writes the ledger.
const (
	// sqlWorkerClaim leases jobs that are due.
	//
	//	$1 owner  text
	//	$2 lease  interval
	//	$3 limit  integer
	sqlWorkerClaim = `
with due as (
	select job_id from job_queue
	where state in ('ready', 'retry_waiting') and scheduled_at <= now()
	order by scheduled_at
	limit $3
	for update skip locked
), claimed as (
	update job_queue q
	set state = 'leased', lease_owner = $1, lease_until = now() + $2::interval
	from due
	where q.job_id = due.job_id
	returning q.job_id, q.attempts, q.lease_until
)
insert into ledger_lease (owner, job_id, attempts, lease_until)
select $1, job_id, attempts, lease_until from claimed
returning owner, job_id::text, attempts, lease_until`

	// sqlWorkerRenew renews a lease that is still what it was.
	//
	//	$1 owner        text
	//	$2 job id       uuid
	//	$3 attempts     integer
	//	$4 lease_until  timestamptz
	//	$5 lease        interval
	sqlWorkerRenew = `
with renewed as (
	update job_queue
	set lease_until = now() + $5::interval
	where lease_owner = $1 and job_id = $2 and attempts = $3 and lease_until = $4 and state = 'leased'
	returning lease_until
)
insert into ledger_lease (owner, job_id, attempts, lease_until)
select $1, $2, $3, lease_until from renewed
returning lease_until`

	// sqlWorkerFinish finishes a job whose lease the worker has still.
	//
	//	$1 owner     text
	//	$2 job id    uuid
	//	$3 attempts  integer
	sqlWorkerFinish = `
with finished as (
	update job_queue
	set state = 'succeeded', lease_owner = null, lease_until = null
	where lease_owner = $1 and job_id = $2 and attempts = $3 and state = 'leased'
	returning job_id
)
insert into ledger_finish (owner, job_id)
select $1, job_id from finished`

	// sqlWorkerAdd adds jobs, each with 1 to 4 tries.
	sqlWorkerAdd = `
insert into job_queue (job_kind, max_attempts)
select 'storm', 1 + floor(random() * 4) from generate_series(1, 5)`
)

// worker claims jobs one after the other, and does to them what workers do.
type worker struct {
	*storm
	pool   *pgxpool.Pool
	name   string
	claims int
}

// leased is a job that a worker has claimed.
type leased struct {
	Owner      string
	ID         string
	Attempts   int
	LeaseUntil time.Time
}

func (w *worker) work(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.turn(ctx); err != nil {
			w.met("workers' errors", err)
			pause(ctx, upTo(50*time.Millisecond))
		}
	}
}

// turn is a claim and what comes of it. An error ends it, and the job is left to
// the reapers.
func (w *worker) turn(ctx context.Context) error {
	lease := 150*time.Millisecond + upTo(350*time.Millisecond)
	if rand.IntN(4) == 0 {
		dead, err := w.claim(ctx, lease/2, 1+rand.IntN(8))
		w.add("deaths", len(dead))
		return err
	}
	jobs, err := w.claim(ctx, lease, 1)
	if err != nil || len(jobs) == 0 {
		return err
	}
	job := jobs[0]
	if rand.IntN(4) == 0 {
		pause(ctx, lease+upTo(lease)) // slow, not dead
		return w.finish(ctx, job, "late finishes rejected")
	}
	for range rand.IntN(4) {
		pause(ctx, upTo(lease+lease/4)) // now and then too late
		kept, err := w.renew(ctx, &job, lease)
		if err != nil || !kept {
			return err
		}
	}
	pause(ctx, upTo(lease))
	return w.finish(ctx, job, "finishes rejected")
}

// claim claims at most limit jobs, and adds some when there is none.
func (w *worker) claim(ctx context.Context, lease time.Duration, limit int) ([]leased, error) {
	w.claims++
	rows, err := w.pool.Query(ctx, sqlWorkerClaim, fmt.Sprintf("%s/%d", w.name, w.claims), lease, limit)
	if err != nil {
		return nil, err
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[leased])
	if err != nil {
		return nil, err
	}
	w.add("claims", len(jobs))
	if len(jobs) == 0 {
		_, err = w.pool.Exec(ctx, sqlWorkerAdd)
	}
	return jobs, err
}

// renew reports whether the lease was still there to be renewed. Sometimes the
// row is locked for a while, maybe beyond the end of the old lease.
func (w *worker) renew(ctx context.Context, job *leased, lease time.Duration) (kept bool, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, sqlWorkerRenew, job.Owner, job.ID, job.Attempts, job.LeaseUntil, lease).
			Scan(&job.LeaseUntil)
		if rand.IntN(3) == 0 {
			pause(ctx, upTo(lease/2))
		}
		return err
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		w.add("renewals rejected", 1)
		return false, nil
	case err != nil:
		return false, err
	}
	w.add("renewals", 1)
	return true, nil
}

func (w *worker) finish(ctx context.Context, job leased, turnedAway string) error {
	tag, err := w.pool.Exec(ctx, sqlWorkerFinish, job.Owner, job.ID, job.Attempts)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		w.add(turnedAway, 1)
		return nil
	}
	w.add("finishes", 1)
	return nil
}

// upTo is a random while.
func upTo(most time.Duration) time.Duration { return rand.N(most) }

// pause waits, and reports whether ctx is still there.
func pause(ctx context.Context, while time.Duration) bool {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
