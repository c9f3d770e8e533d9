package reaper

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/gates"
)

// Apply reaps the oldest stale leases, at most limit, in one transaction: a job
// with tries left goes back to the queue with a delay, one whose tries are spent
// to the dead letters. actor says who reaps; it is stored with the dead letters.
//
// A refusal is not an error: the result is Refused with a Reason, and nothing
// was touched. An empty or white actor is refused as [ReasonActorRequired]
// before a transaction is begun; a closed gate inside it.
//
// A job that PostgreSQL or the mover turns away stays as it was and is listed in
// Failures; the others are settled. Rows that someone else has locked are left
// to them. A lease that is not stale by the database's clock at the start of the
// transaction is never touched.
//
// After an error nothing has changed, except after [ErrOutcomeUnknown], when
// nobody can know. A limit below 1 is [ErrLimit], an actor that is not text
// [ErrActor], a setting that does not parse a [gates.ValueError]. When ctx ends,
// the transaction is rolled back.
//
// With a pgx.Tx as DB all of this happens in a savepoint, and the row locks stay
// until the caller's transaction ends.
func (r *Reaper) Apply(ctx context.Context, actor string, limit int) (*ApplyResult, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	if strings.TrimSpace(actor) == "" {
		return refusal(ReasonActorRequired), nil
	}
	if !utf8.ValidString(actor) || strings.ContainsRune(actor, 0) {
		return nil, fmt.Errorf("%w: %q", ErrActor, actor)
	}
	result, err := r.attempt(ctx, actor, limit, (*pass).settle)
	if concernsRows(err) {
		result, err = r.attempt(ctx, actor, limit, (*pass).settleEach)
	}
	return result, err
}

// attempt is one transaction of an apply.
func (r *Reaper) attempt(
	ctx context.Context, actor string, limit int, settle func(*pass, context.Context) error,
) (*ApplyResult, error) {
	tx, err := r.begin(ctx, "")
	if err != nil {
		return nil, err
	}
	defer rollback(ctx, tx)

	baseSec, reason, err := r.readGates(ctx, tx)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return refusal(reason), nil
	}
	jobs, err := r.claim(ctx, tx, limit, baseSec)
	if err != nil {
		return nil, err
	}
	p := &pass{Reaper: r, tx: tx, actor: actor, jobs: jobs}
	if err := settle(p, ctx); err != nil {
		return nil, err
	}
	if err := r.commit(ctx, tx); err != nil {
		return nil, err
	}
	return p.result(), nil
}

// readGates returns the backoff base in seconds, or the reason for a refusal.
func (r *Reaper) readGates(ctx context.Context, tx pgx.Tx) (baseSec int64, reason string, err error) {
	values, err := r.cfg.Gates.Read(ctx, tx, gates.Keys())
	if err != nil {
		return 0, "", fmt.Errorf("reaper: read gates: %w", err)
	}
	if reason, err = values.Closed(); err != nil || reason != "" {
		return 0, reason, err
	}
	baseSec, err = values.BackoffBase()
	return baseSec, "", err
}

// result lists what became of the jobs, in the order of the claim.
func (p *pass) result() *ApplyResult {
	result := &ApplyResult{Actor: p.actor, Actions: make([]Action, 0, len(p.jobs))}
	for _, job := range p.jobs {
		switch {
		case job.failure != nil:
			result.FailedCount++
			result.Failures = append(result.Failures, *job.failure)
		case job.spent:
			result.DeadLetterCount++
			result.Actions = append(result.Actions, Action{
				Action: MovedToDeadLetter, JobID: job.id, Attempts: job.attempts, DeadLetter: &job.receipt,
			})
		default:
			result.ResetCount++
			result.Actions = append(result.Actions, Action{
				Action: ResetToRetryWaiting, JobID: job.id, Attempts: job.attempts,
				BackoffSec: job.delaySec, ScheduledAt: job.scheduledAt,
			})
		}
	}
	return result
}
