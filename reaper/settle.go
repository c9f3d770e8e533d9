package reaper

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// pass is the transaction of one apply and the jobs that it has claimed.
type pass struct {
	*Reaper
	tx *transaction
	order
	*harvest

	through  bool // a job of the kind that is being settled went through
	atCommit bool // the error came from the commit
}

// settle gives every job its due: all at once, or with care when that was tried
// and some were turned away.
func (p *pass) settle(ctx context.Context) error {
	var resets, moves []*claimed
	for _, job := range p.jobs {
		switch {
		case job.failure != nil:
		case job.spent:
			moves = append(moves, job)
		default:
			resets = append(resets, job)
		}
	}
	if p.care == swift {
		return p.settleAll(ctx, resets, moves)
	}
	return p.settleEach(ctx, resets, moves)
}

// settleAll settles jobs in one exchange, or in three when the mover cannot be
// pipelined. When a job is turned away with an error, the transaction is of no
// further use.
func (p *pass) settleAll(ctx context.Context, resets, moves []*claimed) error {
	if len(resets)+len(moves) == 0 {
		return nil
	}
	batch, along, send := &pgx.Batch{}, p.commitsAlong(moves), p.send
	if along {
		send = p.sendAndCommit
	}
	reset := p.queueReset(batch, resets)
	move := p.queueMove(batch, moves, along)
	if err := send(ctx, batch); err != nil {
		return err
	}
	reset.markMissing()
	err := move.finish(ctx)
	if err != nil && p.tx.over {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}

// commitsAlong reports whether the commit may travel with the last writes: nothing
// but the server has a say before it then. A job that a trigger kept from its
// reset is no reason against it, since it is as it was.
func (p *pass) commitsAlong(moves []*claimed) bool {
	_, strict := p.cfg.DeadLetter.(deadletter.Table)
	return p.connects() && p.cfg.OnApply == nil && (len(moves) == 0 || strict)
}

// sendAndCommit sends a batch with the commit behind it, which the server leaves
// undone when a statement before it fails. When the connection breaks, nobody can
// know how far the server came.
func (p *pass) sendAndCommit(ctx context.Context, batch *pgx.Batch) error {
	if ctx.Err() != nil {
		return p.send(ctx, batch)
	}
	batch.Queue("commit").Query(func(rows pgx.Rows) error {
		p.atCommit = true
		rows.Close()
		return rows.Err()
	})
	err := p.tx.SendBatch(ctx, batch).Close()
	switch {
	case err == nil:
		p.tx.over = true
		return nil
	case surelyFailed(err):
		return fmt.Errorf("reaper: settle jobs: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

// send sends a batch that may be empty.
func (p *pass) send(ctx context.Context, batch *pgx.Batch) error {
	if batch.Len() == 0 {
		return nil
	}
	if err := p.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("reaper: settle jobs: %w", err)
	}
	return nil
}

// queueReset queues the reset of jobs, if there are any.
func (p *pass) queueReset(batch *pgx.Batch, jobs []*claimed) *tally {
	done := newTally(jobs)
	if len(jobs) > 0 {
		delays := pgtext.Integers(len(jobs), func(i int) int64 { return jobs[i].delaySec })
		batch.Queue(p.sql.reset, p.scope, LastErrorReaped, ids(jobs), attempts(jobs), delays).Query(done.read)
	}
	return done
}

// ids are the jobs' keys as an array for a parameter.
func ids(jobs []*claimed) string {
	return pgtext.Array(len(jobs), func(i int) string { return jobs[i].id })
}

// attempts are the jobs' bumped attempts as an array for a parameter.
func attempts(jobs []*claimed) string {
	return pgtext.Integers(len(jobs), func(i int) int64 { return int64(jobs[i].bumped) })
}
