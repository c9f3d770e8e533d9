package reaper

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

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
	// still be undone, instead of at the commit. What it sets is undone, so that
	// they are deferred again for OnApply.
	sqlCheckpoint  = "savepoint lease_reaper_constraints"
	sqlConstraints = "set constraints all immediate"
	sqlDeferAgain  = "rollback to savepoint lease_reaper_constraints"
)

// sampleSize is how many jobs are tried alone before an error is taken for one
// that no row is to blame for.
const sampleSize = 16

// settler is a way to settle a group of jobs inside a savepoint. When it
// returns an error that concerns rows, the savepoint is there still.
type settler func(ctx context.Context, jobs []*claimed) error

// settleEach gives every job its due but those that are turned away: a group
// with such a job in it is undone and halved, until the job stands alone.
func (p *pass) settleEach(ctx context.Context, resets, moves []*claimed) error {
	if _, err := p.narrow(ctx, resets, p.resetGroup); err != nil {
		return err
	}
	p.through = false
	_, err := p.narrow(ctx, moves, p.moveGroup)
	return err
}

// narrow settles jobs, marks those that are turned away, and reports whether
// there were none.
func (p *pass) narrow(ctx context.Context, jobs []*claimed, try settler) (clean bool, err error) {
	if len(jobs) == 0 {
		return true, nil
	}
	cause, err := p.probe(ctx, jobs, try)
	if cause == nil || err != nil {
		return cause == nil, err
	}
	var away *turnedAwayError
	switch {
	case errors.As(cause, &away):
		rest := without(jobs, away.failures)
		if len(rest) == len(jobs) {
			return false, cause // it names no job of these, and would for ever
		}
		_, err := p.narrow(ctx, rest, try)
		return false, err
	case mayBlameAll(cause) && !p.through:
		rest, err := p.sample(ctx, jobs, try, cause)
		if err == nil {
			_, err = p.narrow(ctx, rest, try)
		}
		return false, err
	case len(jobs) == 1:
		jobs[0].failure = failureOf(jobs[0], cause)
		return false, nil
	}
	return false, p.halve(ctx, jobs, try)
}

// probe tries a group. It returns why jobs of it were turned away, after
// undoing them, or an error that ends the apply.
func (p *pass) probe(ctx context.Context, jobs []*claimed, try settler) (cause, err error) {
	cause = try(ctx, jobs)
	switch {
	case cause == nil:
		p.through = true
		return nil, nil
	case !mayBlameRows(ctx, cause) || isConflict(cause) && p.conflicts < maxConflicts:
		return cause, cause
	}
	if _, err := p.tx.Exec(ctx, sqlUndo); err != nil {
		return cause, cause // without a savepoint: it was the statement that failed, before any row
	}
	return cause, nil
}

// sample tries some of the jobs alone, to find out whether rows are to blame at
// all. It returns the jobs without the one that went through, or the cause when
// none did.
func (p *pass) sample(ctx context.Context, jobs []*claimed, try settler, cause error) ([]*claimed, error) {
	for _, i := range rand.Perm(len(jobs))[:min(sampleSize, len(jobs))] {
		alone, err := p.probe(ctx, jobs[i:i+1], try)
		if err != nil {
			return nil, err
		}
		if alone == nil {
			return slices.Concat(jobs[:i], jobs[i+1:]), nil
		}
	}
	return nil, cause
}

// halve settles the halves of a group that cannot be settled whole. When the
// first half can, the reason is in the second, which is halved untried.
func (p *pass) halve(ctx context.Context, jobs []*claimed, try settler) error {
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
	m := p.queueMove(batch, jobs, false)
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
	if p.care == thorough && !p.nested {
		batch.Queue(sqlCheckpoint)
		batch.Queue(sqlConstraints)
		batch.Queue(sqlDeferAgain)
	}
	batch.Queue(sqlRelease)
}
