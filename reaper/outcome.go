package reaper

import (
	"context"
	"log/slog"
	"time"
)

// result lists what became of the jobs, in the order of the claim.
func (p *pass) result() *ApplyResult {
	result := &ApplyResult{Actor: p.actor, Actions: make([]Action, 0, len(p.jobs)), Skipped: p.skipped}
	for _, job := range p.jobs {
		switch {
		case job.failure != nil:
			result.FailedCount++
			result.Failures = append(result.Failures, *job.failure)
			continue
		case job.spent:
			result.DeadLetterCount++
		default:
			result.ResetCount++
		}
		result.Actions = append(result.Actions, job.action(p.now))
	}
	return result
}

func (job *claimed) action(now time.Time) Action {
	action := Action{
		Action:     ResetToRetryWaiting,
		JobID:      job.id,
		Attempts:   job.bumped,
		JobKind:    job.kind,
		LeaseOwner: job.owner,
		LeaseUntil: time.UnixMicro(job.leaseUntil).UTC(),
	}
	action.Overdue = now.Sub(action.LeaseUntil)
	if job.spent {
		action.Action, action.DeadLetter = MovedToDeadLetter, job.receipt
		return action
	}
	action.BackoffSec, action.ScheduledAt = job.delaySec, addSeconds(now, job.delaySec)
	return action
}

// addSeconds adds more seconds than a Duration can hold.
func addSeconds(t time.Time, sec int64) time.Time {
	return time.Unix(t.Unix()+sec, int64(t.Nanosecond())).UTC()
}

// logApply writes one record for an apply that changed something.
func (r *Reaper) logApply(ctx context.Context, result *ApplyResult, took time.Duration) {
	if len(result.Actions) == 0 {
		return
	}
	r.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "reaped stale leases",
		slog.String("actor", result.Actor),
		slog.Int("reset_count", result.ResetCount),
		slog.Int("dead_letter_count", result.DeadLetterCount),
		slog.Int("failed_count", result.FailedCount),
		slog.Duration("took", took),
	)
}
