package reaper

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Table maps the reaper to a queue. Its zero value is the reference schema's
// job_queue, and so is every part of it that is left empty.
type Table struct {
	// Name is the table's name, with its schema or on the search path. A wrong
	// one shows as PostgreSQL's error 42P01 at the first call.
	Name    pgx.Identifier
	Columns Columns
	States  States
}

// None as the name of JobKind or LastError says that the queue has no such
// column. Jobs then have an empty kind, and why a job was reaped is not stored.
const None = "-"

// Columns names the queue's columns. An empty name is the field's own in snake
// case: job_id for JobID. The key may be a uuid, a bigint or a text.
type Columns struct {
	JobID, JobKind, State, Attempts, MaxAttempts, ScheduledAt, LeaseOwner, LeaseUntil, LastError string
}

// States names the three states that the reaper knows. Empty ones are leased,
// retry_waiting and dead_letter.
type States struct {
	Leased, RetryWaiting, DeadLetter string
}

// withDefaults names all that was left empty.
func (t Table) withDefaults() Table {
	if len(t.Name) == 0 {
		t.Name = pgx.Identifier{"job_queue"}
	}
	c, s := t.Columns, t.States
	t.Columns = Columns{
		JobID:       cmp.Or(c.JobID, "job_id"),
		JobKind:     cmp.Or(c.JobKind, "job_kind"),
		State:       cmp.Or(c.State, "state"),
		Attempts:    cmp.Or(c.Attempts, "attempts"),
		MaxAttempts: cmp.Or(c.MaxAttempts, "max_attempts"),
		ScheduledAt: cmp.Or(c.ScheduledAt, "scheduled_at"),
		LeaseOwner:  cmp.Or(c.LeaseOwner, "lease_owner"),
		LeaseUntil:  cmp.Or(c.LeaseUntil, "lease_until"),
		LastError:   cmp.Or(c.LastError, "last_error"),
	}
	t.States = States{
		Leased:       cmp.Or(s.Leased, "leased"),
		RetryWaiting: cmp.Or(s.RetryWaiting, "retry_waiting"),
		DeadLetter:   cmp.Or(s.DeadLetter, "dead_letter"),
	}
	return t
}

// DeadLetterQueue returns the mapping as package deadletter takes it, in a
// [deadletter.Store]. What is wrong with a name is reported by the calls that take
// the store, and by [New].
func (t Table) DeadLetterQueue() deadletter.Queue {
	t = t.withDefaults()
	return deadletter.Queue{
		Table:        t.Name,
		JobID:        t.Columns.JobID,
		JobKind:      unlessNone(t.Columns.JobKind),
		Attempts:     t.Columns.Attempts,
		MaxAttempts:  t.Columns.MaxAttempts,
		State:        t.Columns.State,
		ScheduledAt:  t.Columns.ScheduledAt,
		LeaseOwner:   t.Columns.LeaseOwner,
		LeaseUntil:   t.Columns.LeaseUntil,
		LastError:    unlessNone(t.Columns.LastError),
		Leased:       t.States.Leased,
		RetryWaiting: t.States.RetryWaiting,
		DeadLetter:   t.States.DeadLetter,
	}
}

// unlessNone is the name of a column that may be missing; it is then empty.
func unlessNone(name string) string {
	if name == None {
		return ""
	}
	return name
}

// checkDistinct reports columns, and states, that stand for two things at once. A
// queue whose retry state is its leased one would lose its jobs.
func (t Table) checkDistinct() error {
	var faults []error
	q := t.DeadLetterQueue()
	for _, name := range pgtext.Twice(
		q.JobID, q.JobKind, q.State, q.Attempts, q.MaxAttempts, q.ScheduledAt, q.LeaseOwner, q.LeaseUntil, q.LastError,
	) {
		faults = append(faults, fmt.Errorf("%w: column %q", ErrDuplicateName, name))
	}
	for _, name := range pgtext.Twice(q.Leased, q.RetryWaiting, q.DeadLetter) {
		faults = append(faults, fmt.Errorf("%w: state %q", ErrDuplicateName, name))
	}
	return errors.Join(faults...)
}
