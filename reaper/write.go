package reaper

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/letter"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// write resets and moves the jobs of a batch: all at once, or in groups when that
// was tried and some were rejected.
func (a *attempt) write(ctx context.Context, jobs []*claimedJob) error {
	var resets, moves []*claimedJob
	for _, job := range jobs {
		if job.exhausted {
			moves = append(moves, job)
		} else {
			resets = append(resets, job)
		}
	}
	var err error
	if a.mode == modeFast {
		err = a.writeAll(ctx, resets, moves)
	} else {
		err = a.writeGroups(ctx, resets, moves)
	}
	if errors.Is(err, deadletter.ErrUnavailable) && len(resets) == 0 && !a.mayGoOn() {
		return &blockedError{err} // without the mover there is nothing to write
	}
	var writing *writeError
	if err == nil || errors.Is(err, ErrOutcomeUnknown) || errors.As(err, &writing) {
		return err
	}
	return &writeError{err: err}
}

// mayGoOn reports whether the attempt may claim another batch after this one.
func (a *attempt) mayGoOn() bool { return a.next != nil && a.req.claims > 1 }

// writeAll writes everything in one exchange. The commit is in it too, where the client
// has nothing to do before the commit: there is no hook, and no mover but deadletter.Table
// or deadletter.InPlace. Then the server checks that each row is stored as it was written,
// and fails before the commit if one is not. A function mover costs one exchange more, for
// the commit; a mover in Go two, for the close and the commit.
func (a *attempt) writeAll(ctx context.Context, resets, moves []*claimedJob) error {
	commit := a.commitsInBatch(moves)
	batch := &pgx.Batch{}
	if !commit || a.tables.Code {
		a.queuePlannerSettings(batch)
	}
	a.queueReset(batch, a.rows().ResetChecked, resets, func(*claimedJob, bool) {})
	finish := a.queueMove(batch, moves)
	if !commit {
		if err := a.tx.Send(ctx, batch); err != nil {
			return fmt.Errorf("reaper: write jobs: %w", err)
		}
		return finish(ctx)
	}
	atCommit, err := a.tx.SendAndCommit(ctx, batch)
	switch {
	case err == nil:
		if err := finish(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
		return nil
	case pgtx.NotCommitted(err):
		return &writeError{err: fmt.Errorf("reaper: write jobs: %w", err), atCommit: atCommit}
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

// commitsInBatch reports whether the client has nothing to do before the commit.
func (a *attempt) commitsInBatch(moves []*claimedJob) bool {
	return pgtx.HasConn(a.r.db) && a.r.cfg.OnApply == nil && (len(moves) == 0 || a.r.inPlace || a.r.letters != nil)
}

// queueReset queues the reset of jobs, and tells of each row that was changed
// whether it is as it was written.
func (a *attempt) queueReset(batch *pgx.Batch, sql string, jobs []*claimedJob, changed func(*claimedJob, bool)) {
	if len(jobs) == 0 {
		return
	}
	args := []any{a.r.scope, LastErrorReaped, ids(jobs), addresses(jobs), bumped(jobs), delays(jobs)}
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		var n int
		var scheduledAt pgtype.Timestamptz
		var asWritten pgtype.Bool
		_, err := pgx.ForEachRow(rows, []any{&n, &scheduledAt, &asWritten}, func() error {
			job := jobs[n-1]
			job.scheduledAt = fromServer(scheduledAt)
			changed(job, asWritten.Bool)
			return nil
		})
		return err
	})
}

// queueMove queues the move of jobs, or the part of it that comes before a mover of
// the caller's. The function it returns does what is left once the batch was
// answered.
func (a *attempt) queueMove(batch *pgx.Batch, jobs []*claimedJob) func(context.Context) error {
	if len(jobs) == 0 {
		return func(context.Context) error { return nil }
	}
	if !a.r.inPlace && a.r.letters == nil {
		return a.queueMoverMove(batch, jobs)
	}
	sql := a.rows().InsertChecked
	if a.tables.JSONB {
		sql = a.rows().InsertJSONBChecked
	}
	letters := a.queueLetters(batch, sql, jobs)
	batch.Queue(a.rows().CloseChecked, a.closeArgs(jobs)...).Query(discard)
	return func(context.Context) error {
		for _, job := range jobs {
			a.giveReceipt(job, letters)
		}
		return nil
	}
}

// letterIDs are the ids of stored dead letters by those of their jobs. Jobs may share
// an id.
type letterIDs map[string][]string

// queueLetters queues the insert of dead letters. In place the jobs are their own.
func (a *attempt) queueLetters(batch *pgx.Batch, sql string, jobs []*claimedJob) letterIDs {
	stored := make(letterIDs, len(jobs))
	if a.r.inPlace {
		for _, job := range jobs {
			stored[job.id] = append(stored[job.id], job.id)
		}
		return stored
	}
	args := []any{a.r.scope, ids(jobs), FinalErrorReaped, a.req.actor, addresses(jobs), bumped(jobs)}
	if !a.plainStyles {
		batch.Queue(letter.SQLPlainStyles)
		defer batch.Queue(letter.SQLOwnStyles)
	}
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		var jobID, letterID string
		_, err := pgx.ForEachRow(rows, []any{&jobID, &letterID}, func() error {
			stored[jobID] = append(stored[jobID], letterID)
			return nil
		})
		return err
	})
	return stored
}

// giveReceipt gives a job the receipt of its letter, and reports whether there is one.
func (a *attempt) giveReceipt(job *claimedJob, stored letterIDs) bool {
	own := stored[job.id]
	if len(own) == 0 {
		return false
	}
	stored[job.id] = own[1:]
	job.receipt = &deadletter.Receipt{JobID: job.id, Document: letter.Receipt{
		DeadLetterID: own[0], JobID: job.id, Attempts: a.r.cfg.Queue.attemptsAfter(job),
		FinalError: FinalErrorReaped,
	}.JSON()}
	return true
}

// closeArgs are the parameters of the close.
func (a *attempt) closeArgs(jobs []*claimedJob) []any {
	return []any{a.r.scope, FinalErrorReaped, ids(jobs), addresses(jobs), bumped(jobs)}
}
