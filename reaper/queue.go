package reaper

import (
	"cmp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/mapping"
)

// Table maps the reaper to a queue. Its zero value is the reference schema's
// job_queue, and so is every part of it that is left empty.
type Table struct {
	// Name is the table's name, with its schema or on the search path. A wrong
	// one shows as PostgreSQL's error 42P01 at the first call.
	Name    pgx.Identifier
	Columns Columns
	States  States

	// LeaseLength is how long a lease lasts, where Columns.LeaseUntil names the column
	// with its start, such as locked_at: a lease ends this much later, in whole
	// microseconds. It asserts that no job runs longer, since a start and a length
	// cannot be renewed. Too short, and jobs that run are given away; too long, and
	// those of dead workers lie idle. Default 0: the column has the end.
	LeaseLength time.Duration

	// CountsAtClaim says that the worker's claim counts the attempt. A reap then
	// leaves the attempts as they are, and moves a job whose attempts have reached
	// their maximum. Default: a reap counts one.
	CountsAtClaim bool

	// MaxAttempts is the maximum of attempts where Columns.MaxAttempts is [None], which
	// needs it, and of rows in which that column is NULL. Default 0: a NULL maximum is
	// never reached.
	MaxAttempts int

	// ExtraAttempts is added to the maximum of the column, where that counts retries
	// and not the first try. It is not added to MaxAttempts. Default 0.
	ExtraAttempts int

	// TimesInUTC says that the time columns are timestamps without a time zone that
	// hold UTC, as those of Rails and Ecto do. Over a timestamptz it is [ErrLeaseType].
	TimesInUTC bool

	// MaxLostLeases is how many leases a job may lose before it is moved. It goes with
	// Columns.LostLeases: neither works without the other.
	MaxLostLeases int

	// Only limits the reaper to rows in which these columns hold these values: no other
	// row is stale, whatever its lease is. [Now] and [Keep] are no such values.
	Only Set

	// OnReset and OnMove are further columns, written by the update that resets a job
	// or takes a moved one out of the queue. A redrive writes those of OnReset too, so
	// these should undo what OnMove wrote. [Keep] for the lease's column or the owner's
	// leaves that as it is. Without a column of states a row that has all values of
	// OnMove, and no lease, is a dead job's: one of them must be such that no free job
	// has it, and the columns' types must have an equality, as json has none.
	OnReset, OnMove Set
}

// Set gives columns their values: nil is NULL, [Now] the time; a bool, an integer and a
// string are written as the column's type reads them. Other values, and a column that
// the same update writes already, are [ErrMapping].
type Set map[string]any

// Values of a [Set].
const (
	// Now is the start of the transaction, by the database's clock, in UTC where
	// Table.TimesInUTC is set.
	Now = mapping.Now

	// Keep leaves a column as it is that a reset or a move would otherwise write: the
	// lease's or the owner's.
	Keep = mapping.Keep
)

// None as the name of a column says that the queue has no such column. Without JobKind,
// jobs have an empty kind; without LastError, why a job was reaped is not stored; without
// LeaseOwner, jobs have no owner; without MaxAttempts, Table.MaxAttempts is the maximum.
// Without State, a job is leased if its lease's column is not NULL, and its OnMove must
// tell a moved job from a free one, unless the mover removes the row. No other column
// may be missing.
const None = "-"

// Columns names the queue's columns. An empty name is the field's own in snake
// case: job_id for JobID. The key may be a uuid, a bigint or a text.
type Columns struct {
	JobID, JobKind, State, Attempts, MaxAttempts, ScheduledAt, LeaseOwner, LeaseUntil, LastError string

	// LeaseSeconds is a numeric column with the length of each row's lease in seconds,
	// instead of Table.LeaseLength; LeaseUntil then names the column with its start. A
	// length that is NULL, negative, infinite or above 100000000000 is of no lease: the
	// row is never stale. No index can hold the end of such leases, so a claim reads all
	// leased rows. Default: none.
	LeaseSeconds string

	// LostLeases is an integer column that counts lost leases apart from the attempts;
	// NULL is none. A reap then counts there and leaves the attempts, or with
	// Table.CountsAtClaim gives the attempt of the claim back; the backoff, and whether
	// to move, go by this count. A redrive sets it to 0. Default: none.
	LostLeases string
}

// States names the three states that the reaper knows. Empty ones are leased,
// retry_waiting and dead_letter. They are labels of an enum, texts, or integers such as
// "1".
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

		LeaseSeconds: c.LeaseSeconds,
		LostLeases:   c.LostLeases,
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
		LostLeases:   t.Columns.LostLeases,
		Leased:       t.States.Leased,
		RetryWaiting: t.States.RetryWaiting,
		DeadLetter:   t.States.DeadLetter,

		Maximum:       t.MaxAttempts,
		ExtraAttempts: t.ExtraAttempts,
		TimesInUTC:    t.TimesInUTC,
		Only:          t.Only,
		OnReset:       t.OnReset,
		OnMove:        t.OnMove,
	}
}

// mapping is the description of the queue that its statements are made of.
func (t Table) mapping() mapping.Queue {
	c, s := t.Columns, t.States
	return mapping.Queue{
		Table: t.Name, JobID: c.JobID, JobKind: unlessNone(c.JobKind), State: unlessNone(c.State),
		ScheduledAt: c.ScheduledAt, Attempts: c.Attempts, MaxAttempts: unlessNone(c.MaxAttempts),
		LostLeases: c.LostLeases, LeaseOwner: unlessNone(c.LeaseOwner), LeaseUntil: c.LeaseUntil,
		LeaseSeconds: c.LeaseSeconds, LastError: unlessNone(c.LastError),
		Leased: s.Leased, RetryWaiting: s.RetryWaiting, DeadLetter: s.DeadLetter,
		LeaseLength: t.LeaseLength, CountsAtClaim: t.CountsAtClaim, TimesInUTC: t.TimesInUTC,
		Maximum: t.MaxAttempts, ExtraAttempts: t.ExtraAttempts, MaxLostLeases: t.MaxLostLeases,
		Only: t.Only, OnReset: t.OnReset, OnMove: t.OnMove,
	}
}

// unlessNone is the name of a column that may be missing; it is then empty.
func unlessNone(name string) string {
	if name == None {
		return ""
	}
	return name
}

// attemptsAfter are the attempts of a job as an apply stores them.
func (t Table) attemptsAfter(job *claimedJob) int {
	switch {
	case t.Columns.LostLeases == "":
		return job.bumped
	case t.CountsAtClaim && job.isReset():
		return max(job.attempts-1, 0)
	}
	return job.attempts
}
