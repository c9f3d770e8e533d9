package reaper

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Reasons of a Skip.
const (
	SkipGone     = "gone"      // there is no such job in the queue
	SkipRenewed  = "renewed"   // its owner has renewed the lease
	SkipClaimed  = "claimed"   // another owner has leased it, or the same one again
	SkipFinished = "finished"  // it is not leased, and no reaper did that
	SkipReaped   = "reaped"    // another reaper has reaped it
	SkipLocked   = "locked"    // as it was, but somebody has locked the row
	SkipChanged  = "changed"   // the lease is the same, the attempts or would_action are not
	SkipNotStale = "not_stale" // as it was, and not stale by this reaper's settings
)

// ApplyPlan resets and moves the jobs that a dry run listed, which somebody has
// reviewed since, and no others: those that have not changed, with the same owner,
// lease end, attempts and would_action. The others are listed as Skipped with a
// reason, in the plan's order, and left alone. The plan may have been read back from
// its JSON, and jobs may have been taken out of it.
//
// Gates, transaction, result and errors are those of [Reaper.Apply]. A plan with
// a job twice, without its would_action, or with an id that cannot be one of the
// queue's is [ErrPlan], and so is nil. Config.MaxStale does not count here: the plan
// is what a person looked at.
func (r *Reaper) ApplyPlan(ctx context.Context, actor string, plan *DryRunResult) (*ApplyResult, error) {
	if err := errors.Join(checkActor(actor), checkPlan(plan)); err != nil {
		return nil, err
	}
	result, _, err := r.apply(ctx, request{actor: actor, limit: len(plan.Jobs), plan: orEmpty(plan.Jobs)})
	if pgtx.Class(pgtx.Code(err)) == dataException && errors.As(err, new(*claimError)) {
		err = fmt.Errorf("%w: %w", ErrPlan, err) // what the server says of a plan's values
	}
	return result, err
}

// checkPlan reports what is wrong with a plan as far as that shows without the
// database.
func checkPlan(plan *DryRunResult) error {
	if plan == nil {
		return fmt.Errorf("%w: it is nil", ErrPlan)
	}
	var faults []error
	seen := make(map[string]bool, len(plan.Jobs))
	for _, job := range plan.Jobs {
		if seen[job.JobID] {
			faults = append(faults, fmt.Errorf("%w: job %q is listed twice", ErrPlan, job.JobID))
		}
		seen[job.JobID] = true
		if job.WouldAction != WouldReset && job.WouldAction != WouldMove {
			faults = append(faults, fmt.Errorf("%w: job %q: would_action %q", ErrPlan, job.JobID, job.WouldAction))
		}
	}
	return errors.Join(faults...)
}

// queuePlan queues the claim of a plan's jobs, and then what became of the
// others.
func (a *attempt) queuePlan(batch *pgx.Batch, scan func(pgx.Rows) error, jobs *[]*claimedJob) {
	args := planned(a.req.plan)
	batch.Queue(a.rows().ClaimPlan, append([]any{a.r.scope}, args...)...).Query(scan)
	args = append([]any{a.r.scope, []string{LastErrorReaped, FinalErrorReaped}}, args...)
	batch.Queue(a.r.sql.SkipReasons, args...).Query(func(found pgx.Rows) error { return a.scanSkipped(found, *jobs) })
}

// planned is a plan as arrays for parameters: job ids, lease ends, owners,
// attempts, and whether a job moves.
func planned(plan []Job) []any {
	n := len(plan)
	ends, owners, moves := make([]pgtype.Timestamptz, n), make([]*string, n), make([]bool, n)
	for i, job := range plan {
		ends[i], owners[i], moves[i] = toServer(job.LeaseUntil), job.LeaseOwner, job.WouldAction == WouldMove
	}
	return []any{
		pgtext.Array(n, func(i int) string { return plan[i].JobID }),
		ends, owners,
		pgtext.Integers(n, func(i int) int64 { return int64(plan[i].Attempts) }),
		moves,
	}
}

// scanSkipped reads a place in the plan, counted from 1, and a reason for each of its
// jobs, and keeps those of the jobs that were not claimed.
func (a *attempt) scanSkipped(rows pgx.Rows, jobs []*claimedJob) error {
	claimed := make(map[string]bool, len(jobs))
	for _, job := range jobs {
		claimed[job.id] = true
	}
	var n int64
	var id, reason string // the key as the server writes it; a plan may have another spelling
	_, err := pgx.ForEachRow(rows, []any{&n, &id, &reason}, func() error {
		if !claimed[id] {
			a.skipped = append(a.skipped, Skip{JobID: a.req.plan[n-1].JobID, Reason: reason})
		}
		return nil
	})
	return err
}

// dataException is the class of values that a type cannot hold.
const dataException = "22"
