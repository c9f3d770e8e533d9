package reaper

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/isolate"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// writeGroups resets and then moves jobs in groups, so that those which are
// rejected stand alone. When no job can be moved at all, for a reason that may be no
// job's, the resets stay, and each job that was to be moved fails.
func (a *attempt) writeGroups(ctx context.Context, resets, moves []*claimedJob) error {
	if err := a.restorePlanner(ctx); err != nil {
		return err
	}
	resetter := a.groupWriter(a.resetGroup)
	resetter.LockProbe = a.r.sql.LockQueue
	if err := resetter.Write(ctx, resets); err != nil || resetter.Blocked != nil {
		return prefixed("write jobs", cmp.Or(err, resetter.Blocked))
	}
	mover := a.groupWriter(a.moveGroup)
	mover.Again = unbump
	switch {
	case a.r.inPlace:
		mover.LockProbe = a.r.sql.LockQueue
	case a.r.letters != nil:
		mover.LockProbe = a.r.sql.LockQueue + ";" + a.r.sql.LockLetters
	}
	mover.WritesLater = a.r.callsMover()
	mover.Blocks = func(err error) bool { return errors.Is(err, deadletter.ErrUnavailable) }
	if err := mover.Write(ctx, moves); err != nil {
		return prefixed("write jobs", err)
	}
	if len(resets) == 0 && pgtx.Code(mover.Blocked) == pgtx.CodeLockNotAvailable {
		// Resets would have shown whose lock it is.
		if _, err := a.tx.Exec(ctx, a.r.sql.LockQueue, pgx.QueryExecModeSimpleProtocol); err != nil {
			return prefixed("write jobs", err)
		}
	}
	a.moverErr = cmp.Or(a.moverErr, mover.Blocked)
	return nil
}

// restorePlanner returns to the session's own settings, before the triggers of the
// user's and a mover.
func (a *attempt) restorePlanner(ctx context.Context) error {
	batch := &pgx.Batch{}
	a.queuePlannerSettings(batch)
	return a.tx.Send(ctx, batch)
}

// timedOutBudget is how long the isolating way tries groups that the server's
// statement_timeout ends, before the batch is too large.
const timedOutBudget = time.Second

// groups writes jobs in groups.
func (a *attempt) groupWriter(
	queue func(*pgx.Batch, []*claimedJob) func(context.Context) error,
) *isolate.Writer[*claimedJob] {
	w := &isolate.Writer[*claimedJob]{
		Tx:          a.tx.Tx,
		Queue:       queue,
		Reject:      (*claimedJob).fail,
		Constraints: a.mode == modeIsolateConstraints && !a.r.nested, // a caller's are left to the caller
		Ends: func(err error) bool {
			return !mayConcernRows(err) || pgtx.IsConflict(err) && a.conflicts < pgtx.MaxConflicts
		},
		LockTimedOut:   a.lockTimedOut,
		TimedOutBudget: timedOutBudget,
	}
	if !a.r.nested {
		w.ShortLockTimeout = "set local lock_timeout = " + a.r.shortLockTimeout
	}
	return w
}

// resetGroup queues the reset of a group.
func (a *attempt) resetGroup(batch *pgx.Batch, jobs []*claimedJob) func(context.Context) error {
	written := newTally(jobs)
	a.queueReset(batch, a.rows().Reset, jobs, written.add)
	return func(context.Context) error { return written.err() }
}

// moveGroup queues the move of a group.
func (a *attempt) moveGroup(batch *pgx.Batch, jobs []*claimedJob) func(context.Context) error {
	if !a.r.inPlace && a.r.letters == nil {
		return a.queueMoverMove(batch, jobs)
	}
	sql := a.rows().Insert
	if a.tables.JSONB {
		sql = a.rows().InsertJSONB
	}
	letters := a.queueLetters(batch, sql, jobs)
	closed := newTally(jobs)
	closed.queue(batch, a.rows().Close, a.closeArgs(jobs))
	return func(context.Context) error {
		rejected := closed.rejected()
		for _, job := range jobs {
			if !a.giveReceipt(job, letters) {
				rejected[job] = errNotStored
			}
		}
		return rejection(rejected)
	}
}

// unbump gives a job that is to be moved back the attempts that it has, when a CHECK
// rejects one more.
func unbump(job *claimedJob, cause error) bool {
	if pgtx.Code(cause) != pgtx.CodeCheckViolation || job.bumped == job.counter {
		return false
	}
	job.bumped = job.counter
	return true
}

// Reasons of failures that PostgreSQL does not report as an error.
var (
	errIgnored   = errors.New("a trigger or a policy changed or ignored the write")
	errSeveral   = errors.New("several rows have this id, or a trigger changed the id")
	errNotStored = errors.New("the dead-letter table stored no row")
)

// tally counts how often a statement has changed the row of each job.
type tally struct {
	jobs      []*claimedJob
	changed   map[*claimedJob]int
	asWritten map[*claimedJob]bool
}

func newTally(jobs []*claimedJob) *tally {
	return &tally{jobs, make(map[*claimedJob]int, len(jobs)), make(map[*claimedJob]bool, len(jobs))}
}

func (t *tally) add(job *claimedJob, asWritten bool) {
	t.changed[job]++
	t.asWritten[job] = asWritten
}

// queue queues a statement that returns the places of the jobs whose rows it has
// changed, and whether each is as it was written.
func (t *tally) queue(batch *pgx.Batch, sql string, args []any) {
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		var n int
		var asWritten *bool
		_, err := pgx.ForEachRow(rows, []any{&n, &asWritten}, func() error {
			t.add(t.jobs[n-1], asWritten != nil && *asWritten)
			return nil
		})
		return err
	})
}

// rejected are the jobs whose rows are not as they were written, and why.
func (t *tally) rejected() map[*claimedJob]error {
	rejected := map[*claimedJob]error{}
	for _, job := range t.jobs {
		switch {
		case t.changed[job] > 1:
			rejected[job] = errSeveral
		case !t.asWritten[job]:
			rejected[job] = errIgnored
		}
	}
	return rejected
}

func (t *tally) err() error { return rejection(t.rejected()) }

// rejection is the error that names jobs, if there are any.
func rejection(causes map[*claimedJob]error) error {
	if len(causes) == 0 {
		return nil
	}
	return &isolate.RejectedError[*claimedJob]{Causes: causes}
}

// mayConcernRows reports whether an error that came while jobs were written may
// concern some of them, so that the others could be written without them, or the
// resets without the moves.
func mayConcernRows(err error) bool {
	var hook *hookError
	if errors.As(err, &hook) {
		return false
	}
	var mover *moverError
	if errors.As(err, &mover) { // its SQLSTATE may be another server's
		return true
	}
	if pgtx.Code(err) != "" {
		return pgtx.IsServerError(err)
	}
	var rejected *isolate.RejectedError[*claimedJob]
	return errors.As(err, &rejected)
}
