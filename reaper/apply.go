package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Apply reaps the oldest stale leases, at most limit, in one transaction: a job
// with attempts left is reset, to be tried again after a delay; one whose attempts
// are used up is moved to the dead letters. actor says who reaps; it is stored with
// the dead letters.
//
// A refusal is not an error: the result is Refused with a Reason, and nothing was
// changed. An empty or white actor is refused as [ReasonActorRequired] before a
// transaction is begun; a closed gate inside it. The first refusal may find jobs
// locked already by the statement that also reads the gates, and lets them go;
// further ones lock nothing until the gates are open.
//
// A job that PostgreSQL or the mover rejects stays as it was and is listed in
// Failures; the others are settled. When every job of a full batch is rejected, the
// same transaction goes on with the jobs after them, up to ten batches; so more jobs
// than limit may fail, but no more are reset or moved. When the mover can move
// nothing, since its table or a privilege is missing or its error wraps
// [deadletter.ErrUnavailable], jobs are reset all the same, and those to be moved
// are Failures; if there is nothing to reset, that is the apply's error.
//
// Rows that someone else has locked are left to them. Any other lock, such as that
// of a foreign key's row, is waited for as long as [Config.LockTimeout] says. A
// lease that is not stale by the database's clock at the start of the transaction is
// never touched.
//
// After an error nothing has changed, except after [ErrOutcomeUnknown], when
// nobody can know. A limit below 1 is [ErrLimit], an actor that is not text
// [ErrActor], a setting that does not parse a [gates.ValueError], a standby or a
// read-only connection [ErrReadOnly]; what else PostgreSQL says is a
// [pgconn.PgError]. When ctx ends before the exchange that commits, the
// transaction is rolled back; when it ends during it, that is
// [ErrOutcomeUnknown]. A panic in a source, a policy, a mover or a hook is an
// error like any other of theirs.
//
// With a pgx.Tx as DB all of this happens in a savepoint, and the row locks stay
// until the caller's transaction ends.
func (r *Reaper) Apply(ctx context.Context, actor string, limit int) (*ApplyResult, error) {
	if err := errors.Join(checkLimit(limit), checkActor(actor)); err != nil {
		return nil, err
	}
	result, _, err := r.apply(ctx, request{actor: actor, limit: limit, claims: maxClaims})
	return result, err
}

// maxClaims is how many batches an Apply claims at most.
const maxClaims = 10

// apply reaps one batch. It returns the cursor after it when the batch was full.
func (r *Reaper) apply(ctx context.Context, req request) (*ApplyResult, *cursor, error) {
	if strings.TrimSpace(req.actor) == "" {
		return refusal(ReasonActorRequired), nil, nil
	}
	if req.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, req.timeout)
		defer cancel()
	}
	began := time.Now()
	result, next, err := r.applyWithRetry(ctx, req)
	if err != nil {
		return nil, next, wrapReadOnly(err)
	}
	r.logApply(ctx, result, time.Since(began))
	return result, next, nil
}

// applyWithRetry makes attempts until one succeeds or fails for good.
func (r *Reaper) applyWithRetry(ctx context.Context, req request) (*ApplyResult, *cursor, error) {
	a := &attempt{r: r, req: req}
	for {
		result, err := a.run(ctx)
		if err == nil {
			return result, a.more, nil
		}
		r.tables.Store(nil) // they may have been altered
		next := a.retry(ctx, err)
		if next == nil {
			return nil, a.more, err
		}
		a = next
	}
}

// run claims, settles, calls the hook and commits.
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
		if err := a.settle(ctx, batch); err != nil {
			return nil, err
		}
		if a.more == nil || n >= a.req.claims || !allFailed(batch) {
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
		if a.blocked != nil && !slices.ContainsFunc(a.jobs, (*claimedJob).isReset) {
			return nil, &blockedError{a.blocked}
		}
		return result, nil
	}
	if err := a.onApply(ctx, result); err != nil {
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
	if err != nil {
		return &hookError{err}
	}
	return nil
}

// commitError tells a commit that did not happen from one that may have.
func (a *attempt) commitError(err error) error {
	if a.r.nested || pgtx.NotCommitted(err) {
		return &settleError{err: fmt.Errorf("reaper: commit: %w", err), atCommit: true}
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

// retry returns the next attempt after an error: the same again after a conflict,
// unless the transaction is the caller's, and a more careful one when rows may have
// been rejected. A row that conflicts each time is rejected in the end.
func (a *attempt) retry(ctx context.Context, err error) *attempt {
	next := &attempt{
		r: a.r, req: a.req, mode: a.mode, conflicts: a.conflicts,
		lockTimedOut: pgtx.Code(err) == pgtx.CodeLockNotAvailable,
	}
	var claiming *claimError
	var settling *settleError
	switch {
	case errors.Is(err, ErrOutcomeUnknown) || ctx.Err() != nil:
		return nil
	case pgtx.IsConflict(err) && (a.conflicts < pgtx.MaxConflicts || a.r.nested):
		next.conflicts++
		return next.unless(a.r.nested)
	case errors.As(err, &claiming):
		next.lookFirst = true
		return next.unless(a.lookFirst || !pgtx.IsServerError(err))
	case errors.As(err, &settling) && mayConcernRows(err):
		next.mode = a.r.carefulMode(settling.atCommit)
		return next.unless(next.mode <= a.mode)
	}
	return nil
}

// unless returns no attempt if there is a reason against it.
func (a *attempt) unless(reason bool) *attempt {
	if reason {
		return nil
	}
	return a
}

// carefulMode is the mode after one in which rows were rejected.
func (r *Reaper) carefulMode(atCommit bool) mode {
	if atCommit || r.cfg.OnApply == nil {
		return modeIsolateConstraints
	}
	return modeIsolate
}
