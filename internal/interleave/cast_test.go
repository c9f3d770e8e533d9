package interleave_test

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// role is what a participant is.
type role int

const (
	reaps    role = iota // applies
	works                // has a lease, or claims one
	operates             // changes the settings
	tends                // redrives or purges letters
)

// participant is one call of a scenario.
type participant struct {
	role role
	call func(ctx context.Context, conn *pgx.Conn, o *outcome)
}

// outcome is what a participant heard.
type outcome struct {
	role role
	err  error

	apply      *reaper.ApplyResult
	rolledBack bool // by the caller whose transaction it was
	drain      *reaper.DrainResult
	redrive    *deadletter.RedriveResult
	purge      *deadletter.PurgeResult
	changed    int64 // rows of the queue, by a worker
}

// unknown reports whether nobody can know what was committed.
func (o *outcome) unknown() bool {
	return errors.Is(o.err, reaper.ErrOutcomeUnknown) || errors.Is(o.err, deadletter.ErrOutcomeUnknown)
}

// patient is a wait for locks that no schedule is as long as.
const patient = time.Minute

// newReaper makes a reaper that has not read anything yet.
func newReaper(db reaper.DB, cfg reaper.Config) *reaper.Reaper {
	cfg.LockTimeout = patient
	r, err := reaper.New(db, cfg)
	if err != nil {
		panic(err) // the scenario's fault
	}
	return r
}

func applies(limit int, cfg reaper.Config) participant {
	return participant{reaps, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		o.apply, o.err = newReaper(conn, cfg).Apply(ctx, "reaper", limit)
	}}
}

func appliesPlan(plan *reaper.DryRunResult) participant {
	return participant{reaps, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		o.apply, o.err = newReaper(conn, reaper.Config{}).ApplyPlan(ctx, "reaper", plan)
	}}
}

func drains(batch int) participant {
	return participant{reaps, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		o.drain, o.err = newReaper(conn, reaper.Config{}).Drain(ctx, "reaper", batch)
	}}
}

// appliesInside applies in a transaction of the caller's, which then commits or not.
func appliesInside(limit int, commit bool) participant {
	return participant{reaps, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		tx, err := conn.Begin(ctx)
		if err != nil {
			o.err = err
			return
		}
		o.apply, o.err = newReaper(tx, reaper.Config{}).Apply(ctx, "reaper", limit)
		end := tx.Rollback
		if commit && o.err == nil {
			end = tx.Commit
		}
		o.rolledBack = !commit
		if err := end(ctx); o.err == nil && err != nil {
			o.err = errors.Join(err, reaper.ErrOutcomeUnknown) // what a caller must take it for
		}
	}}
}

// The statements of workers, as those of examples/worker.
const (
	fence      = ` where job_id = $1 and lease_owner = $2 and attempts = $3 and state = 'leased'`
	sqlRenew   = `update job_queue set lease_until = now() + interval '1 hour'` + fence
	sqlEnd     = `update job_queue set state = 'succeeded', lease_owner = null, lease_until = null` + fence
	sqlDequeue = `with due as (
	select job_id from job_queue
	where state in ('ready', 'retry_waiting') and scheduled_at <= now()
	order by scheduled_at
	limit 1
	for update skip locked
)
update job_queue j
set state = 'leased', lease_owner = $1, lease_until = now() + $2::interval
from due
where j.job_id = due.job_id
returning j.job_id::text, j.lease_owner, j.attempts`
)

// lease is what a worker knows of its lease.
type lease struct {
	ID, Owner string
	Attempts  int
}

func (l lease) args() []any { return []any{l.ID, l.Owner, l.Attempts} }

// changes runs a statement of a worker's, alone or in a transaction.
func changes(sql string, l lease, transaction bool) participant {
	return participant{works, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		if !transaction {
			tag, err := conn.Exec(ctx, sql, l.args()...)
			o.changed, o.err = tag.RowsAffected(), err
			return
		}
		o.err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, sql, l.args()...)
			o.changed = tag.RowsAffected()
			return err
		})
	}}
}

// claimsAndRenews leases a job that may run for so long, and renews the lease.
func claimsAndRenews(length string) participant {
	return participant{works, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		var l lease
		err := conn.QueryRow(ctx, sqlDequeue, "worker", length).Scan(&l.ID, &l.Owner, &l.Attempts)
		if errors.Is(err, pgx.ErrNoRows) {
			return
		}
		if o.err = err; err != nil {
			return
		}
		o.changed = 1
		tag, err := conn.Exec(ctx, sqlRenew, l.args()...)
		o.err = err
		o.changed += tag.RowsAffected()
	}}
}

func sets(key, value string) participant {
	return participant{operates, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		o.err = gates.Table{}.Set(ctx, conn, "operator", key, value)
	}}
}

func opensWindow(duration time.Duration) participant {
	return participant{operates, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		_, o.err = gates.Table{}.OpenWindow(ctx, conn, "operator", duration)
	}}
}

func closesWindow() participant {
	return participant{operates, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		o.err = gates.Table{}.CloseWindow(ctx, conn, "operator")
	}}
}

func redrives() participant {
	return participant{tends, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		o.redrive, o.err = deadletter.Redrive(ctx, conn, deadletter.Store{LockTimeout: patient}, "operator", deadletter.Filter{}, 10)
	}}
}

func purges() participant {
	return participant{tends, func(ctx context.Context, conn *pgx.Conn, o *outcome) {
		cfg := deadletter.PurgeConfig{Unredriven: true}
		o.purge, o.err = deadletter.Purge(ctx, conn, deadletter.Store{LockTimeout: patient}, time.Hour, cfg)
	}}
}
