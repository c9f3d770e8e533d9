package reaper

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Apply reaps the oldest stale leases, at most limit, in one transaction: a job
// with attempts left is reset, to be tried again after a delay; one whose attempts
// are used up is moved to the dead letters. actor says who reaps; it is stored with
// the dead letters.
//
// A refusal is not an error: the result is Refused with a Reason, and nothing was
// changed. An actor that is empty or only white space is refused as [ReasonActorRequired] before a
// transaction begins; a closed gate refuses it inside the transaction. The first
// refusal may have locked jobs, because it claims in the exchange that reads the
// gates; it releases them. The applies after it lock nothing until the gates are open.
//
// A job that PostgreSQL or the mover rejects stays as it was and is listed in
// Failures; the others are reaped. When every job of a full batch is rejected, the
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
// nobody can know. The errors are:
//   - [ErrLimit] for a limit below 1;
//   - [ErrActor] for an actor that PostgreSQL cannot store as text;
//   - a [gates.ValueError] for a setting that does not parse;
//   - [ErrReadOnly] on a standby or a read-only connection;
//   - a pgconn.PgError for anything else that PostgreSQL reports.
//
// When ctx ends before the exchange that commits, the transaction is rolled back;
// when it ends during that exchange, the error is [ErrOutcomeUnknown]. A panic in a
// source, a policy, a mover or a hook is returned as an error of theirs.
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

// apply makes one apply. It returns the cursor after its last batch, if that batch was
// full.
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
			return result, a.next, nil
		}
		r.tables.Store(nil) // they may have been altered
		again := a.retry(err)
		if again == nil || errors.Is(err, ErrOutcomeUnknown) || ctx.Err() != nil {
			return nil, a.next, err
		}
		a = again
	}
}
