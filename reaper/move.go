package reaper

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/letter"
)

// queueMoverMove queues what comes before a mover that is promised rows with the
// bumped attempts: a function in the database, or one of the caller's. The function
// it returns calls the mover, if its work is not queued too, and closes what it left
// open.
func (a *attempt) queueMoverMove(batch *pgx.Batch, jobs []*claimedJob) func(context.Context) error {
	bump := a.queueBump(batch, jobs)
	if a.r.callsMover() {
		return func(ctx context.Context) error {
			if err := bump(); err != nil {
				return err
			}
			return a.callMover(ctx, jobs)
		}
	}
	receipts := a.queueCall(batch, a.letterBatch(jobs))
	unclosed := a.queueClose(batch, jobs)
	return func(context.Context) error {
		if err := bump(); err != nil {
			return err
		}
		return keepReceipts(receipts, jobs, unclosed)
	}
}

// queueBump queues the count of the failed attempt, unless the claim has counted it.
// Once the batch was answered, the function it returns reports what was not counted.
func (a *attempt) queueBump(batch *pgx.Batch, jobs []*claimedJob) func() error {
	if a.r.cfg.Queue.mapping().Step() == 0 {
		return func() error { return nil }
	}
	bump := newTally(jobs)
	bump.queue(batch, a.rows().Bump, []any{a.r.scope, ids(jobs), addresses(jobs), bumped(jobs)})
	return bump.err
}

// queueCall queues the call of the mover's function. The function it returns gives the
// receipts once the batch was answered.
func (a *attempt) queueCall(batch *pgx.Batch, letters deadletter.Batch) func() ([]deadletter.Receipt, error) {
	call := letter.Call{
		Function: a.r.function, Table: letters.Queue.Table, JobID: letters.Queue.JobID,
		IDs: letters.IDs(), Actor: letters.Actor, FinalError: letters.FinalError,
	}
	documents := call.Queue(batch)
	return func() ([]deadletter.Receipt, error) {
		return letter.Receipts(call.IDs, *documents, deadletter.NewReceipt, deadletter.Refuse)
	}
}

// callMover calls a mover of the caller's and closes the jobs after it.
func (a *attempt) callMover(ctx context.Context, jobs []*claimedJob) error {
	var receipts []deadletter.Receipt
	err := recoverPanic("mover", func() (err error) {
		receipts, err = a.r.cfg.DeadLetter.Move(ctx, a.tx.Tx, a.letterBatch(jobs))
		return err
	})
	if err := a.checkOpen("the mover"); err != nil {
		return err
	}
	switch {
	case err == nil:
	case ctx.Err() != nil || a.isBroken():
		return fmt.Errorf("reaper: move to dead letters: %w", err)
	default:
		return &moverError{err}
	}
	batch := &pgx.Batch{}
	unclosed := a.queueClose(batch, jobs)
	if err := a.tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("reaper: close moved jobs: %w", err)
	}
	return keepReceipts(func() ([]deadletter.Receipt, error) { return receipts, nil }, jobs, unclosed)
}

// letterBatch is what a mover is given.
func (a *attempt) letterBatch(jobs []*claimedJob) deadletter.Batch {
	batch := deadletter.Batch{
		Actor: a.req.actor, FinalError: FinalErrorReaped,
		Jobs: make([]deadletter.Job, len(jobs)), Queue: a.r.deadLetterQueue,
	}
	for i, job := range jobs {
		batch.Jobs[i] = deadletter.Job{ID: job.id, Attempts: a.r.cfg.Queue.attemptsAfter(job)}
	}
	return batch
}

// queueClose takes the jobs out of the queue, unless the mover did so. Once the batch was
// answered, the map it returns has the ids of jobs that are not closed as they were
// written, and why.
func (a *attempt) queueClose(batch *pgx.Batch, jobs []*claimedJob) map[string]error {
	unclosed := map[string]error{}
	open := make(map[string]int, len(jobs)) // how many claimed jobs have an id
	for _, job := range jobs {
		open[job.id]++
	}
	var id string
	var asWritten bool
	args := []any{a.r.scope, FinalErrorReaped, ids(jobs), bumped(jobs)}
	batch.Queue(a.r.sql.CloseMoved, args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&id, &asWritten}, func() error {
			open[id]--
			switch {
			case !asWritten:
				unclosed[id] = errIgnored
			case open[id] < 0: // another job has the same id and attempts
				unclosed[id] = errSeveral
			}
			return nil
		})
		return err
	})
	batch.Queue(a.r.sql.Unclosed, ids(jobs)).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
			unclosed[id] = errIgnored
			return nil
		})
		return err
	})
	return unclosed
}

// keepReceipts gives each job its receipt, and rejects those that are refused or
// still in the queue.
func keepReceipts(read func() ([]deadletter.Receipt, error), jobs []*claimedJob, unclosed map[string]error) error {
	var receipts []deadletter.Receipt
	err := recoverPanic("mover", func() (err error) {
		receipts, err = read()
		return err
	})
	if err != nil {
		return &moverError{err}
	}
	if len(receipts) != len(jobs) {
		return fmt.Errorf("%w: %d for %d", ErrReceiptCount, len(receipts), len(jobs))
	}
	byID := make(map[string][]*deadletter.Receipt, len(receipts))
	for i, receipt := range receipts {
		byID[receipt.JobID] = append(byID[receipt.JobID], &receipts[i])
	}
	rejected := map[*claimedJob]error{}
	for _, job := range jobs {
		own := byID[job.id]
		if len(own) == 0 {
			return fmt.Errorf("%w: none for job %q", ErrReceiptCount, job.id)
		}
		job.receipt, byID[job.id] = own[0], own[1:]
		switch {
		case !letter.IsReceipt(job.receipt.Document):
			return fmt.Errorf("%w: the document for job %q is not a JSON object", ErrReceiptCount, job.id)
		case job.receipt.Refused:
			rejected[job] = &refusedError{job.receipt.Reason}
		case unclosed[job.id] != nil:
			rejected[job] = unclosed[job.id]
		}
	}
	return rejection(rejected)
}

// refusedError is why a mover left a job alone.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return "the mover refused: " + e.reason }
