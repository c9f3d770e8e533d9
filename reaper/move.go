package reaper

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
)

// move takes jobs whose attempts are spent to the dead letters: bump, the
// mover's work, close. A mover that can be pipelined has all of it queued at
// once; another is called between the bump and the close.
type move struct {
	*pass
	jobs     []*claimed
	bumped   *tally
	receipts func() ([]deadletter.Receipt, error) // nil: the mover is still to be called
	unclosed []string
}

// queueMove queues the move of jobs, if there are any, or the part of it that
// comes before the mover. When the commit travels along, the server itself makes
// sure that every job was moved.
func (p *pass) queueMove(batch *pgx.Batch, jobs []*claimed, along bool) *move {
	m := &move{pass: p, jobs: jobs, bumped: newTally(jobs)}
	if len(jobs) == 0 {
		return m
	}
	batch.Queue(p.sql.bump, p.scope, ids(jobs), attempts(jobs)).Query(m.bumped.read)
	if mover, ok := p.cfg.DeadLetter.(deadletter.Table); ok && along {
		m.receipts = mover.QueueStrict(batch, m.letters())
		batch.Queue(p.sql.closeStrict, p.scope, FinalErrorReaped, ids(jobs), attempts(jobs))
	} else if mover, ok := pipelinedMover(p.cfg.DeadLetter); ok {
		m.receipts = mover.Queue(batch, m.letters())
		m.queueClose(batch)
		m.queueUnclosed(batch)
	}
	return m
}

// pipelinedMover returns a mover of the library's own whose statements can travel
// with others. Another type may have got its Queue by embedding one of them, and
// would be asked past its own Move.
func pipelinedMover(mover deadletter.Mover) (deadletter.Pipeliner, bool) {
	switch mover := mover.(type) {
	case deadletter.Table:
		return mover, true
	case deadletter.Function:
		return mover, true
	}
	return nil, false
}

// finish does what is left to do after the batch was answered, and marks what
// became of the jobs.
func (m *move) finish(ctx context.Context) error {
	if len(m.jobs) == 0 {
		return nil
	}
	if m.receipts == nil {
		if err := m.call(ctx); err != nil {
			return err
		}
	}
	var receipts []deadletter.Receipt
	err := guarded("mover", func() (err error) {
		receipts, err = m.receipts()
		return err
	})
	if err != nil {
		return &moverError{err}
	}
	if err := assign(receipts, m.jobs); err != nil {
		return err
	}
	return turnedAway(append(m.bumped.missing(), m.open()...))
}

// call calls a mover that cannot be pipelined, and closes the jobs after it.
func (m *move) call(ctx context.Context) error {
	if err := turnedAway(m.bumped.missing()); err != nil {
		return err
	}
	var receipts []deadletter.Receipt
	err := guarded("mover", func() (err error) {
		receipts, err = m.cfg.DeadLetter.Move(ctx, m.tx, m.letters())
		return err
	})
	switch {
	case err == nil:
	case ctx.Err() != nil || m.tx.Conn().IsClosed():
		return fmt.Errorf("reaper: move to dead letters: %w", err)
	default:
		return &moverError{err}
	}
	m.receipts = func() ([]deadletter.Receipt, error) { return receipts, nil }
	batch := &pgx.Batch{}
	m.queueClose(batch)
	m.queueUnclosed(batch)
	return m.send(ctx, batch)
}

// queueClose takes the jobs out of the queue. A function in the database may
// have done so already.
func (m *move) queueClose(batch *pgx.Batch) {
	batch.Queue(m.sql.close, m.scope, FinalErrorReaped, ids(m.jobs))
}

// queueUnclosed asks which jobs were turned away from being closed.
func (m *move) queueUnclosed(batch *pgx.Batch) {
	batch.Queue(m.sql.unclosed, m.scope, ids(m.jobs)).Query(func(rows pgx.Rows) (err error) {
		m.unclosed, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
}

// letters is the batch as the mover takes it.
func (m *move) letters() deadletter.Batch {
	batch := deadletter.Batch{
		Actor: m.actor, FinalError: FinalErrorReaped, Jobs: make([]deadletter.Job, len(m.jobs)), Queue: m.queue,
	}
	for i, job := range m.jobs {
		batch.Jobs[i] = deadletter.Job{ID: job.id, Attempts: job.bumped}
	}
	return batch
}

// open returns a failure for each job that could not be closed.
func (m *move) open() []*Failure {
	var failures []*Failure
	for _, id := range m.unclosed {
		failures = append(failures, &Failure{JobID: id, Error: keptBack})
	}
	return failures
}

// assign gives each job its receipt.
func assign(receipts []deadletter.Receipt, jobs []*claimed) error {
	byID := make(map[string]*deadletter.Receipt, len(receipts))
	for i := range receipts {
		byID[receipts[i].JobID] = &receipts[i]
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
		if !receipt.Valid() {
			return fmt.Errorf("%w: the document for job %q is no JSON object", ErrReceipts, job.id)
		}
		if receipt.Refused {
			refused = append(refused, &Failure{JobID: job.id, Error: "the mover refused: " + receipt.Reason})
		}
		job.receipt = receipt
	}
	return turnedAway(refused)
}
