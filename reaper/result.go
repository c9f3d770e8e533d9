package reaper

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/lease-governance/leasereaper/deadletter"
)

// What would become of a job, or has become of it.
const (
	WouldReset = "reset_to_retry_waiting"
	WouldMove  = "move_to_dead_letter"

	ActionReset = "reset_to_retry_waiting"
	ActionMoved = "moved_to_dead_letter"
)

// Reasons of a refusal. The others are a gate's key and value, as in
// "queue.lease.reaper_enabled=false".
const (
	ReasonActorRequired    = "actor_required"     // the actor is empty or only white space
	ReasonMaxStaleExceeded = "max_stale_exceeded" // see Config.MaxStale
)

// What is stored as a job's last or final error.
const (
	LastErrorReaped  = "lease_expired_reaped"
	FinalErrorReaped = "lease_expired_reaped_at_max_attempts"
)

// DryRunResult shows what an apply would do. Its JSON has each stale lease's end
// exactly, so that it can be read back as a plan.
type DryRunResult struct {
	EvaluatedAt     time.Time `json:"evaluated_at"`      // the transaction's start, by the database's clock
	StaleLeaseCount int       `json:"stale_lease_count"` // all of them, not only those in Jobs
	Limit           int       `json:"limit"`
	Mutation        bool      `json:"mutation"` // always false
	Jobs            []Job     `json:"jobs"`     // oldest lease first
	MoveCount       int       `json:"-"`        // how many of the stale leases counted would be moved

	// StaleLeaseCountCapped says that more leases are stale than were counted; see
	// [Config.CountUpTo].
	StaleLeaseCountCapped bool `json:"stale_lease_count_capped,omitempty"`
}

// Job is a job with a stale lease.
type Job struct {
	JobID          string    `json:"job_id"` // the key in its text form
	JobKind        string    `json:"job_kind"`
	LeaseOwner     *string   `json:"lease_owner"`
	LeaseUntil     time.Time `json:"lease_until"` // may be NegativeInfinity or BC, also in JSON
	Attempts       int       `json:"attempts"`    // as they stand, not bumped
	MaxAttempts    int       `json:"max_attempts"`
	OverdueSeconds int64     `json:"overdue_seconds"` // rounded down; the largest int64 for NegativeInfinity
	WouldAction    string    `json:"would_action"`    // WouldReset or WouldMove
}

// ApplyResult is what an apply did. A refused one holds Refused and Reason
// alone.
type ApplyResult struct {
	Actor           string    `json:"actor"`
	Refused         bool      `json:"refused"`
	Reason          string    `json:"reason"` // why it was refused
	ResetCount      int       `json:"reset_count"`
	DeadLetterCount int       `json:"dead_letter_count"`
	FailedCount     int       `json:"failed_count"`
	Failures        []Failure `json:"failures"` // nil when there are none
	Actions         []Action  `json:"actions"`  // oldest lease first
	Skipped         []Skip    `json:"skipped"`  // jobs of a plan that were left alone; nil when there are none
	More            bool      `json:"-"`        // the limit was reached: more leases may be stale
}

// Action is what became of one job. Its ScheduledAt is exact; the JSON, which is
// RFC 3339, has "9999-12-31T23:59:59.999999Z" for any later time.
type Action struct {
	Action      string              `json:"action"` // ActionReset or ActionMoved
	JobID       string              `json:"job_id"` // the key in its text form
	Attempts    int                 `json:"attempts"`
	BackoffSec  int64               `json:"backoff_sec"`  // of a reset
	ScheduledAt time.Time           `json:"scheduled_at"` // of a reset, by the database's clock; see the type
	DeadLetter  *deadletter.Receipt `json:"dead_letter"`  // of a move, else nil

	// For metrics; not in the JSON.
	JobKind    string        `json:"-"`
	LeaseOwner string        `json:"-"` // empty also for NULL
	LeaseUntil time.Time     `json:"-"` // may be NegativeInfinity
	Overdue    time.Duration `json:"-"` // by the database's clock; at most 292 years
}

// Failure is a job that the apply left exactly as it was, because PostgreSQL or the
// mover rejected it.
type Failure struct {
	JobID    string `json:"job_id"`
	SQLState string `json:"sqlstate"` // PostgreSQL's error code; empty when it was the mover's word
	Error    string `json:"error"`
}

// Skip is a job of a plan that [Reaper.ApplyPlan] left alone.
type Skip struct {
	JobID  string `json:"job_id"`
	Reason string `json:"reason"` // SkipRenewed and the like
}

func refusal(reason string) *ApplyResult {
	return &ApplyResult{Refused: true, Reason: reason}
}

// result lists what became of the jobs, in the order of the claim.
func (a *attempt) result() *ApplyResult {
	result := &ApplyResult{
		Actor: a.req.actor, Actions: make([]Action, 0, len(a.jobs)), Skipped: a.skipped, More: a.next != nil,
	}
	for _, job := range a.jobs {
		switch {
		case job.failure != nil:
			result.FailedCount++
			result.Failures = append(result.Failures, *job.failure)
			continue
		case job.exhausted:
			result.DeadLetterCount++
		default:
			result.ResetCount++
		}
		result.Actions = append(result.Actions, a.action(job))
	}
	return result
}

func (a *attempt) action(job *claimedJob) Action {
	action := Action{
		Action:     ActionReset,
		JobID:      job.id,
		Attempts:   a.r.cfg.Queue.attemptsAfter(job),
		JobKind:    job.kind,
		LeaseOwner: job.owner,
		LeaseUntil: time.UnixMicro(job.leaseUntil).UTC(),
	}
	action.Overdue = a.now.Sub(action.LeaseUntil)
	if job.exhausted {
		action.Action, action.DeadLetter = ActionMoved, job.receipt
		return action
	}
	action.BackoffSec, action.ScheduledAt = job.delaySec, job.scheduledAt
	return action
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

// MarshalJSON writes jobs as a list, also when there are none.
func (r DryRunResult) MarshalJSON() ([]byte, error) {
	type plain DryRunResult
	r.Jobs = orEmpty(r.Jobs)
	return json.Marshal(plain(r))
}

// MarshalJSON writes lease_until in UTC, or as "-infinity".
func (j Job) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		JobID          string    `json:"job_id"`
		JobKind        string    `json:"job_kind"`
		LeaseOwner     *string   `json:"lease_owner"`
		LeaseUntil     timestamp `json:"lease_until"`
		Attempts       int       `json:"attempts"`
		MaxAttempts    int       `json:"max_attempts"`
		OverdueSeconds int64     `json:"overdue_seconds"`
		WouldAction    string    `json:"would_action"`
	}{
		j.JobID, j.JobKind, j.LeaseOwner, timestamp(j.LeaseUntil),
		j.Attempts, j.MaxAttempts, j.OverdueSeconds, j.WouldAction,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (j *Job) UnmarshalJSON(data []byte) error {
	type plain Job
	shadow := struct {
		*plain
		LeaseUntil *timestamp `json:"lease_until"`
	}{(*plain)(j), (*timestamp)(&j.LeaseUntil)}
	return json.Unmarshal(data, &shadow)
}

// MarshalJSON writes a refusal as its reason alone, and leaves failures
// and skipped jobs out when there are none.
func (r ApplyResult) MarshalJSON() ([]byte, error) {
	if r.Refused {
		return json.Marshal(struct {
			Reason  string `json:"reason"`
			Refused bool   `json:"refused"`
		}{r.Reason, true})
	}
	type plain ApplyResult
	r.Actions = orEmpty(r.Actions)
	return json.Marshal(struct {
		plain
		Reason      string    `json:"reason,omitempty"`
		FailedCount int       `json:"failed_count,omitempty"`
		Failures    []Failure `json:"failures,omitempty"`
		Skipped     []Skip    `json:"skipped,omitempty"`
	}{plain: plain(r), FailedCount: r.FailedCount, Failures: r.Failures, Skipped: r.Skipped})
}

// MarshalJSON writes the fields that belong to the action.
func (a Action) MarshalJSON() ([]byte, error) {
	if a.DeadLetter != nil {
		return json.Marshal(struct {
			Action     string              `json:"action"`
			JobID      string              `json:"job_id"`
			Attempts   int                 `json:"attempts"`
			DeadLetter *deadletter.Receipt `json:"dead_letter"`
		}{a.Action, a.JobID, a.Attempts, a.DeadLetter})
	}
	return json.Marshal(struct {
		Action      string    `json:"action"`
		JobID       string    `json:"job_id"`
		Attempts    int       `json:"attempts"`
		BackoffSec  int64     `json:"backoff_sec"`
		ScheduledAt timestamp `json:"scheduled_at"`
	}{a.Action, a.JobID, a.Attempts, a.BackoffSec, timestamp(a.ScheduledAt)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Action) UnmarshalJSON(data []byte) error {
	type plain Action
	shadow := struct {
		*plain
		ScheduledAt *timestamp `json:"scheduled_at"`
	}{(*plain)(a), (*timestamp)(&a.ScheduledAt)}
	return json.Unmarshal(data, &shadow)
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
