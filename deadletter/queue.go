package deadletter

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Queue names the queue's table, its columns and its states; what is made of them in
// a statement is quoted. Its zero value is the reference schema's job_queue. JobKind
// and LastError are empty when another queue has no such column; a dead letter's kind
// is then empty too. The method DeadLetterQueue of the reaper's Table gives that of a
// mapped queue.
type Queue struct {
	Table                                                 pgx.Identifier
	JobID, JobKind, Attempts, MaxAttempts                 string
	State, ScheduledAt, LeaseOwner, LeaseUntil, LastError string

	Leased, RetryWaiting, DeadLetter string
}

// orReference is the reference schema's queue instead of a zero one.
func (q Queue) orReference() Queue {
	if !reflect.ValueOf(q).IsZero() {
		return q
	}
	return Queue{
		Table: pgx.Identifier{"job_queue"},
		JobID: "job_id", JobKind: "job_kind", Attempts: "attempts", MaxAttempts: "max_attempts",
		State: "state", ScheduledAt: "scheduled_at", LeaseOwner: "lease_owner", LeaseUntil: "lease_until",
		LastError: "last_error",
		Leased:    "leased", RetryWaiting: "retry_waiting", DeadLetter: "dead_letter",
	}
}

// names are those that a mover needs, quoted.
func (q Queue) names() *pgtext.Names {
	n := &pgtext.Names{}
	n.Name("queue", q.Table)
	n.Column("job_id", q.JobID)
	n.Column("attempts", q.Attempts)
	n.Column("max_attempts", q.MaxAttempts)
	kind := "''"
	if q.JobKind != "" {
		kind = "q." + n.Column("job_kind", q.JobKind)
	}
	n.Add("kind", kind)
	label, _ := pgtext.Label(q.Attempts) // its fault is the column's, reported already
	n.Add("counter_label", label)
	n.Add("letter_attempts", "u.attempts")
	n.Add("maximum", "q."+n.Column("max_attempts", q.MaxAttempts))
	return n
}

// allNames are those that a store needs, quoted.
func (q Queue) allNames() *pgtext.Names {
	n := q.names()
	n.Column("state", q.State)
	n.Column("scheduled_at", q.ScheduledAt)
	n.Column("lease_owner", q.LeaseOwner)
	n.Column("lease_until", q.LeaseUntil)
	n.Label("retry_waiting", q.RetryWaiting)
	n.Label("dead_state", q.DeadLetter)
	clearError := ""
	if q.LastError != "" {
		clearError = ",\n  " + n.Column("last_error", q.LastError) + " = null"
	}
	n.Add("clear_error", clearError)
	return n
}

// columns are the named columns, empty for one that the queue does not have.
func (q Queue) columns() []string {
	return []string{
		q.JobID, q.JobKind, q.MaxAttempts, q.State, q.Attempts, q.ScheduledAt, q.LeaseOwner, q.LeaseUntil, q.LastError,
	}
}

// faults are those of the names, as one error.
func faults(n *pgtext.Names) error {
	var faults []error
	for _, fault := range n.Faults {
		faults = append(faults, fmt.Errorf("%w: %w", ErrQueue, fault))
	}
	return errors.Join(faults...)
}

// distinct reports names that stand for two things at once.
func (q Queue) distinct() error {
	var faults []error
	for _, name := range append(pgtext.Twice(q.columns()...), pgtext.Twice(q.Leased, q.RetryWaiting, q.DeadLetter)...) {
		faults = append(faults, fmt.Errorf("%w: %q stands for two things", ErrQueue, name))
	}
	return errors.Join(faults...)
}
