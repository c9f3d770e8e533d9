package reaper

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Statements around the writes of a group of jobs. The savepoint is released
// when they went through, and also after they were undone, so that savepoints
// never pile up. The undo is sent as one simple query: a failed transaction
// would not prepare the second half of it.
const (
	sqlSavepoint = "savepoint lease_reaper"
	sqlRelease   = "release savepoint lease_reaper"
	sqlUndo      = "rollback to savepoint lease_reaper; release savepoint lease_reaper"

	// sqlConstraints makes deferred constraints speak up while the group can
	// still be undone, instead of at the commit.
	sqlConstraints = "set constraints all immediate"
)

// settleEach gives every job its due but those that are turned away: a group
// with such a job in it is undone and halved, until the job stands alone.
func (p *pass) settleEach(ctx context.Context) error {
	resets, moves := p.split()
	if err := p.narrow(ctx, resets, p.reset); err != nil {
		return err
	}
	return p.narrow(ctx, moves, p.move)
}

// narrow settles jobs with try and marks those that are turned away.
func (p *pass) narrow(ctx context.Context, jobs []*claimed, try func(context.Context, []*claimed) error) error {
	if len(jobs) == 0 {
		return nil
	}
	err := try(ctx, jobs)
	if err == nil {
		return nil
	}
	if !concernsRows(err) {
		return err
	}
	if err := p.undo(ctx); err != nil {
		return err
	}
	var away *turnedAwayError
	switch {
	case errors.As(err, &away):
		return p.narrow(ctx, without(jobs, away.failures), try)
	case len(jobs) == 1:
		jobs[0].failure = failureOf(jobs[0], err)
		return nil
	}
	half := len(jobs) / 2
	if err := p.narrow(ctx, jobs[:half], try); err != nil {
		return err
	}
	return p.narrow(ctx, jobs[half:], try)
}

// reset resets a group of jobs inside a savepoint, in one round trip.
func (p *pass) reset(ctx context.Context, jobs []*claimed) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlSavepoint)
	done := p.queueReset(batch, jobs)
	p.queueRelease(batch)
	if err := p.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("reaper: reset jobs: %w", err)
	}
	done.changed()
	return nil
}

// move moves a group of jobs inside a savepoint.
func (p *pass) move(ctx context.Context, jobs []*claimed) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlSavepoint)
	done := p.queueBump(batch, jobs)
	if err := p.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("reaper: bump jobs: %w", err)
	}
	if err := p.finishMoves(ctx, done.changed()); err != nil {
		return err
	}
	batch = &pgx.Batch{}
	p.queueRelease(batch)
	if err := p.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("reaper: release jobs: %w", err)
	}
	return nil
}

// queueRelease queues the end of a group that went through. The constraints of a
// caller's transaction are left to the caller.
func (p *pass) queueRelease(batch *pgx.Batch) {
	if !p.nested {
		batch.Queue(sqlConstraints)
	}
	batch.Queue(sqlRelease)
}

// undo takes back what a group wrote.
func (p *pass) undo(ctx context.Context) error {
	if _, err := p.tx.Exec(ctx, sqlUndo); err != nil {
		return fmt.Errorf("reaper: undo jobs: %w", err)
	}
	return nil
}
