package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/gatesql"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/stmt"
)

// attempt is one transaction of an apply.
type attempt struct {
	r   *Reaper
	req request

	mode         mode
	conflicts    int  // how many attempts before it ended in one
	prechecks    bool // read the gates before the claim, so that a closed one is reported first
	lockTimedOut bool // in the attempt before it a wait for a lock timed out

	tx      *pgtx.Tx
	planner plannerSettings
	gates   *gatesql.Answer // nil: a source of the caller's own
	tables  stmt.Tables
	baseSec int64     // the backoff base
	now     time.Time // the transaction's start, by the database's clock

	plainStyles bool // the session writes values in plain forms

	jobs     []*claimedJob
	skipped  []Skip  // jobs of a plan that were not claimed
	next     *cursor // not nil: the last batch was full, and ended here
	moverErr error   // not nil: no job could be moved, and why
}

// request is what an apply is asked to do.
type request struct {
	actor  string
	limit  int
	claims int    // how many batches it may claim; 0: one
	after  cursor // where it begins
	plan   []Job  // nil: the oldest stale leases

	exclude string // the parameter of the claim; "": none

	timeout time.Duration // 0: as long as it takes
}

// mode is how an attempt writes the resets and moves.
type mode int

const (
	modeFast    mode = iota // all at once
	modeIsolate             // in groups, so that the rejected jobs stand alone
	// modeIsolateConstraints also checks deferred constraints for each group. It is a
	// mode of its own because OnApply may write what a deferred constraint asks
	// for: with a hook they are checked early only after they failed the commit.
	modeIsolateConstraints
)

// run claims, writes, calls the hook and commits.
func (a *attempt) run(ctx context.Context) (*ApplyResult, error) {
	defer func() { a.tx.Close(ctx) }()
	batch, reason, err := a.begin(ctx)
	if err != nil {
		return nil, err
	}
	a.r.refused.Store(reason != "")
	if reason != "" {
		return refusal(reason), nil
	}
	for n := 1; len(batch) > 0; n++ {
		if err := a.write(ctx, batch); err != nil {
			return nil, err
		}
		if a.next == nil || n >= a.req.claims || !allFailed(batch) {
			break
		}
		if batch, err = a.claim(ctx); err != nil {
			return nil, err
		}
	}
	return a.finish(ctx)
}

// finish calls the hook and commits, unless the commit has travelled with the
// writes. When nothing was changed there is no commit: it would wait for the disk
// because of the gates' locks alone.
func (a *attempt) finish(ctx context.Context) (*ApplyResult, error) {
	result := a.result()
	switch {
	case a.tx.Committed():
		return result, nil
	case len(result.Actions) == 0:
		if a.moverErr != nil && !slices.ContainsFunc(a.jobs, (*claimedJob).isReset) {
			return nil, &blockedError{prefixed("move to dead letters", a.moverErr)}
		}
		return result, nil
	}
	if err := a.onApply(ctx, result); err != nil {
		return nil, err
	}
	if err := a.checkOpen("OnApply"); err != nil {
		return nil, err
	}
	if err := a.tx.Commit(ctx); err != nil {
		return nil, a.commitError(err)
	}
	return result, nil
}

// onApply calls the hook, with the settings that it also has where no row was
// rejected.
func (a *attempt) onApply(ctx context.Context, result *ApplyResult) error {
	if a.r.cfg.OnApply == nil {
		return nil
	}
	if a.mode != modeFast && !a.r.nested {
		batch := &pgx.Batch{}
		batch.Queue("set local lock_timeout = " + a.r.lockTimeout)
		if err := a.tx.Send(ctx, batch); err != nil {
			return fmt.Errorf("reaper: settings of the hook: %w", err)
		}
	}
	err := recoverPanic("hook", func() error { return a.r.cfg.OnApply(ctx, a.tx.Tx, result) })
	switch {
	case err == nil:
		return nil
	case a.isBroken():
		return fmt.Errorf("reaper: OnApply: %w", err)
	}
	return &hookError{err}
}

// isBroken reports whether the transaction's own connection is closed, so that an error of
// the caller's code is one of it.
func (a *attempt) isBroken() bool {
	conn := a.tx.Conn()
	return conn != nil && conn.IsClosed()
}

// checkOpen reports code of the caller's that has ended the transaction: by a commit or
// by a rollback, which nobody can know.
func (a *attempt) checkOpen(what string) error {
	if conn := a.tx.Conn(); conn != nil && !conn.IsClosed() && conn.PgConn().TxStatus() == 'I' {
		return fmt.Errorf("%w: %s ended the transaction", ErrOutcomeUnknown, what)
	}
	return nil
}

// commitError tells a commit that did not happen from one that may have.
func (a *attempt) commitError(err error) error {
	if a.r.nested || pgtx.NotCommitted(err) {
		return &writeError{err: fmt.Errorf("reaper: commit: %w", err), atCommit: true}
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

// retry returns the attempt to make after an error, or nil: the same again after a
// conflict; one that reads the gates first when the claim failed, since a closed gate is
// told before that; and one that isolates rows when some may have been rejected. A row
// that conflicts each time is isolated in the end.
func (a *attempt) retry(err error) *attempt {
	again := &attempt{
		r: a.r, req: a.req, mode: a.mode, conflicts: a.conflicts, prechecks: a.prechecks,
		lockTimedOut: pgtx.Code(err) == pgtx.CodeLockNotAvailable,
	}
	var claiming *claimError
	switch {
	case pgtx.IsConflict(err) && a.r.nested:
		return nil // only the caller can begin again
	case pgtx.IsConflict(err) && a.conflicts < pgtx.MaxConflicts:
		again.conflicts++
	case errors.As(err, &claiming) && !a.prechecks && pgtx.IsServerError(err):
		again.prechecks = true
	case a.modeAfter(err) > a.mode:
		again.mode = a.modeAfter(err)
	default:
		return nil
	}
	return again
}

// modeAfter returns the mode for the rows that an error may concern. It is the same as
// before if the error concerns none.
func (a *attempt) modeAfter(err error) mode {
	var writing *writeError
	switch {
	case !errors.As(err, &writing) || !mayConcernRows(err):
		return a.mode
	case writing.atCommit || a.r.cfg.OnApply == nil:
		return modeIsolateConstraints
	}
	return modeIsolate
}
