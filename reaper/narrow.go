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

// attemptOn is a way to settle a group of jobs inside a savepoint. When it
// returns an error that concerns rows, the savepoint is there still.
type attemptOn func(ctx context.Context, jobs []*claimed) error

// settleEach gives every job its due but those that are turned away: a group
// with such a job in it is undone and halved, until the job stands alone.
func (p *pass) settleEach(ctx context.Context, resets, moves []*claimed) error {
	if _, err := p.narrow(ctx, resets, p.resetGroup); err != nil {
		return err
	}
	_, err := p.narrow(ctx, moves, p.moveGroup)
	return err
}

// narrow settles jobs, marks those that are turned away, and reports whether
// there were none.
func (p *pass) narrow(ctx context.Context, jobs []*claimed, try attemptOn) (clean bool, err error) {
	if len(jobs) == 0 {
		return true, nil
	}
	err = try(ctx, jobs)
	if err == nil {
		return true, nil
	}
	if !concernsRows(err) {
		return false, err
	}
	if _, err := p.tx.Exec(ctx, sqlUndo); err != nil {
		return false, fmt.Errorf("reaper: undo jobs: %w", err)
	}
	var away *turnedAwayError
	switch {
	case errors.As(err, &away):
		_, err := p.narrow(ctx, without(jobs, away.failures), try)
		return false, err
	case len(jobs) == 1:
		jobs[0].failure = failureOf(jobs[0], err)
		return false, nil
	}
	return false, p.halve(ctx, jobs, try)
}

// halve settles the halves of a group that cannot be settled whole. When the
// first half can, the reason is in the second, which is halved untried.
func (p *pass) halve(ctx context.Context, jobs []*claimed, try attemptOn) error {
	half := len(jobs) / 2
	clean, err := p.narrow(ctx, jobs[:half], try)
	if err != nil {
		return err
	}
	if rest := jobs[half:]; clean && len(rest) > 1 {
		return p.halve(ctx, rest, try)
	}
	_, err = p.narrow(ctx, jobs[half:], try)
	return err
}

// resetGroup resets jobs in one exchange.
func (p *pass) resetGroup(ctx context.Context, jobs []*claimed) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlSavepoint)
	done := p.queueReset(batch, jobs)
	p.queueRelease(batch)
	if err := p.send(ctx, batch); err != nil {
		return err
	}
	done.markMissing()
	return nil
}

// moveGroup moves jobs, and releases the savepoint when all of them went through.
func (p *pass) moveGroup(ctx context.Context, jobs []*claimed) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlSavepoint)
	m := p.queueMove(batch, jobs)
	if err := p.send(ctx, batch); err != nil {
		return err
	}
	if err := m.finish(ctx); err != nil {
		return err
	}
	batch = &pgx.Batch{}
	p.queueRelease(batch)
	return p.send(ctx, batch)
}

// queueRelease queues the end of a group that went through. The constraints of a
// caller's transaction are left to the caller.
func (p *pass) queueRelease(batch *pgx.Batch) {
	if !p.nested {
		batch.Queue(sqlConstraints)
	}
	batch.Queue(sqlRelease)
}
