package reaper

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// pass is the transaction of one apply and the jobs that it has claimed.
type pass struct {
	*Reaper
	tx pgx.Tx
	order
	jobs []*claimed

	through bool // a job of the kind that is being settled went through
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
	batch := &pgx.Batch{}
	reset := p.queueReset(batch, resets)
	move := p.queueMove(batch, moves)
	if err := p.send(ctx, batch); err != nil {
		return err
	}
	reset.markMissing()
	return move.finish(ctx)
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
		delays := make([]int64, len(jobs))
		for i, job := range jobs {
			delays[i] = job.delaySec
		}
		batch.Queue(p.sql.reset, p.grace(), LastErrorReaped, ids(jobs), attempts(jobs), delays).Query(done.read)
	}
	return done
}

func ids(jobs []*claimed) []string {
	list := make([]string, len(jobs))
	for i, job := range jobs {
		list[i] = job.ID
	}
	return list
}

func attempts(jobs []*claimed) []int64 {
	list := make([]int64, len(jobs))
	for i, job := range jobs {
		list[i] = int64(job.bumped)
	}
	return list
}
