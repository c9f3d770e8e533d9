package reaper

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
)

// pass is the transaction of one apply and the jobs that it has claimed.
type pass struct {
	*Reaper
	tx    pgx.Tx
	actor string
	jobs  []*claimed
}

// settle gives every job its due, all at once. When a job is turned away with an
// error, the transaction is of no further use.
func (p *pass) settle(ctx context.Context) error {
	resets, moves := p.split()
	batch := &pgx.Batch{}
	resetDone := p.queueReset(batch, resets)
	bumpDone := p.queueBump(batch, moves)
	if batch.Len() == 0 {
		return nil
	}
	if err := p.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("reaper: write jobs: %w", err)
	}
	resetDone.changed()
	return p.finishMoves(ctx, bumpDone.changed())
}

func (p *pass) split() (resets, moves []*claimed) {
	for _, job := range p.jobs {
		if job.spent {
			moves = append(moves, job)
		} else {
			resets = append(resets, job)
		}
	}
	return resets, moves
}

// queueReset queues the reset of jobs, if there are any.
func (p *pass) queueReset(batch *pgx.Batch, jobs []*claimed) *tally {
	done := newTally(jobs)
	if len(jobs) > 0 {
		delays := make([]int64, len(jobs))
		for i, job := range jobs {
			delays[i] = job.delaySec
		}
		batch.Queue(p.sql.reset, ids(jobs), attempts(jobs), delays, LastErrorReaped).Query(done.read)
	}
	return done
}

// queueBump queues the bump of jobs whose attempts are spent, if there are any.
func (p *pass) queueBump(batch *pgx.Batch, jobs []*claimed) *tally {
	done := newTally(jobs)
	if len(jobs) > 0 {
		batch.Queue(p.sql.bump, ids(jobs), attempts(jobs)).Query(done.read)
	}
	return done
}

// finishMoves hands bumped jobs to the mover and closes their queue rows.
func (p *pass) finishMoves(ctx context.Context, jobs []*claimed) error {
	if len(jobs) == 0 {
		return nil
	}
	batch := deadletter.Batch{
		Actor: p.actor, FinalError: FinalErrorReaped, Jobs: make([]deadletter.Job, len(jobs)), Queue: p.queue,
	}
	for i, job := range jobs {
		batch.Jobs[i] = deadletter.Job{ID: job.id, Attempts: job.attempts}
	}
	receipts, err := p.cfg.DeadLetter.Move(ctx, p.tx, batch)
	switch {
	case err == nil:
	case ctx.Err() != nil || p.tx.Conn().IsClosed():
		return fmt.Errorf("reaper: move to dead letters: %w", err)
	default:
		return &moverError{err}
	}
	if err := assign(receipts, jobs); err != nil {
		return err
	}
	return p.close(ctx, jobs)
}

// assign gives each job its receipt.
func assign(receipts []deadletter.Receipt, jobs []*claimed) error {
	byID := make(map[string]deadletter.Receipt, len(receipts))
	for _, receipt := range receipts {
		byID[receipt.JobID] = receipt
	}
	if len(byID) != len(receipts) || len(receipts) != len(jobs) {
		return fmt.Errorf("%w: %d for %d", ErrReceipts, len(receipts), len(jobs))
	}
	var refused []*Failure
	for _, job := range jobs {
		receipt, ok := byID[job.id]
		if !ok {
			return fmt.Errorf("%w: none for job %q", ErrReceipts, job.id)
		}
		if receipt.Refused {
			refused = append(refused, &Failure{JobID: job.id, Error: "the mover refused: " + receipt.Reason})
		}
		job.receipt = receipt
	}
	return turnedAway(refused)
}

// close takes moved jobs out of the queue. A function in the database may have
// done so already; what is leased after that was turned away.
func (p *pass) close(ctx context.Context, jobs []*claimed) error {
	tag, err := p.tx.Exec(ctx, p.sql.close, ids(jobs), FinalErrorReaped)
	if err != nil {
		return fmt.Errorf("reaper: close moved jobs: %w", err)
	}
	if tag.RowsAffected() == int64(len(jobs)) {
		return nil
	}
	var open []*Failure
	rows, err := p.tx.Query(ctx, p.sql.unclosed, ids(jobs))
	if err != nil {
		return fmt.Errorf("reaper: read moved jobs: %w", err)
	}
	var id string
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		open = append(open, &Failure{JobID: id, Error: keptBack})
		return nil
	})
	if err != nil {
		return fmt.Errorf("reaper: read moved jobs: %w", err)
	}
	return turnedAway(open)
}

func ids(jobs []*claimed) []string {
	list := make([]string, len(jobs))
	for i, job := range jobs {
		list[i] = job.id
	}
	return list
}

func attempts(jobs []*claimed) []int64 {
	list := make([]int64, len(jobs))
	for i, job := range jobs {
		list[i] = int64(job.attempts)
	}
	return list
}
