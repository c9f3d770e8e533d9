package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
)

const (
	// rollbackTimeout bounds a rollback, which also happens when ctx has ended.
	rollbackTimeout = 5 * time.Second

	// maxReason is the longest reason that is stored, in bytes.
	maxReason = 2000
)

var errRefused = errors.New("queue: the dead letter was refused")

// Effects is what a job does in this database, in the transaction that completes
// it. Either both happen or neither does.
type Effects func(ctx context.Context, tx pgx.Tx) error

// Complete ends a job that succeeded. The row is taken first, and its lock holds
// the job for as long as effects take: nobody can reap or claim it meanwhile. On
// [ErrLost] effects were not called; after any other error they were rolled back,
// except after [ErrUnknown]. effects may be nil.
func (q *Queue) Complete(ctx context.Context, job Job, effects Effects) error {
	if effects == nil {
		return known(touch(ctx, q.pool, sqlComplete, job))
	}
	return q.change(ctx, func(tx pgx.Tx) error {
		if err := touch(ctx, tx, sqlComplete, job); err != nil {
			return err
		}
		return effects(ctx, tx)
	})
}

// Fail ends a try that failed, for the reason that is stored with the job. With
// tries left the job waits for the next one; else it goes to the dead letters and
// is buried. The errors are [ErrLost] and [ErrUnknown], and those of PostgreSQL
// and the mover, after which nothing has changed.
func (q *Queue) Fail(ctx context.Context, job Job, reason string) (buried bool, err error) {
	reason = storable(reason)
	attempts := job.Attempts + 1
	if attempts < job.MaxAttempts {
		wait := q.cfg.Backoff.DelaySec(attempts, q.cfg.BackoffBaseSec)
		return false, known(touch(ctx, q.pool, sqlRetry, job, reason, wait))
	}
	err = q.change(ctx, func(tx pgx.Tx) error { return q.bury(ctx, tx, job, reason) })
	return err == nil, err
}

// bury goes as the reaper does when it moves a job: count, store, close.
func (q *Queue) bury(ctx context.Context, tx pgx.Tx, job Job, reason string) error {
	if err := touch(ctx, tx, sqlCount, job); err != nil {
		return err
	}
	job.Attempts++
	receipts, err := q.cfg.DeadLetter.Move(ctx, tx, deadletter.Batch{
		Actor:      q.cfg.Name,
		FinalError: reason,
		Jobs:       []deadletter.Job{{ID: job.ID, Attempts: job.Attempts}},
	})
	switch {
	case err != nil:
		return err
	case len(receipts) != 1 || receipts[0].Refused:
		return errRefused
	}
	err = touch(ctx, tx, sqlClose, job, reason)
	if errors.Is(err, ErrLost) { // a mover may have closed the row itself
		return nil
	}
	return err
}

// change makes what a transaction does happen whole or not at all.
func (q *Queue) change(ctx context.Context, do func(tx pgx.Tx) error) error {
	tx, err := q.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return fmt.Errorf("queue: begin: %w", err)
	}
	defer rollback(ctx, tx)
	if err := do(tx); err != nil {
		return err
	}
	return known(tx.Commit(ctx))
}

// rollback ends what was not committed, also after a panic.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// storable makes a text of anything that a handler says.
func storable(reason string) string {
	reason = strings.ReplaceAll(reason, "\x00", "")
	return strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
}
