package reaper

import (
	"encoding/json"

	"github.com/lease-governance/leasereaper/deadletter"
)

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
