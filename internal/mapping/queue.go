// Package mapping turns the description of a queue into the names and expressions of
// SQL statements over it.
package mapping

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Queue describes a queue. The name of a column is empty where the queue has none.
type Queue struct {
	Table                                pgx.Identifier
	JobID, JobKind, State, ScheduledAt   string
	Attempts, MaxAttempts, LostLeases    string
	LeaseOwner, LeaseUntil, LeaseSeconds string
	LastError                            string
	Leased, RetryWaiting, DeadLetter     string

	LeaseLength                  time.Duration
	CountsAtClaim, TimesInUTC    bool
	Maximum                      int // of attempts, where the column has none; 0: none
	ExtraAttempts, MaxLostLeases int
	Only, OnReset, OnMove        map[string]any
}

// Columns are the columns with a meaning of their own; those that the queue does not
// have are empty.
func (q Queue) Columns() []string {
	return []string{
		q.JobID, q.JobKind, q.State, q.Attempts, q.MaxAttempts, q.ScheduledAt, q.LeaseOwner, q.LeaseUntil,
		q.LastError, q.LeaseSeconds, q.LostLeases,
	}
}

// Names returns the placeholders of the statements, and what stands for them. In a
// statement q is a row of the queue, and u a job of its parameters.
//
//	{queue} {job_id} {attempts} {scheduled_at} {lease_until}  names, quoted
//	{counter}            the column in which a reap counts
//	{kind} {text}        of q: the kind; the kind as a text that is not NULL, or nothing
//	{owner}              of q, as a text
//	{now}                the time of the transaction, as the time columns hold it
//	{scheduled}          of q: when it is to run, a timestamptz
//	{is_leased}          whether q is leased
//	{leased_and}         the same in front of a comparison of {key}
//	{end}                of q: the lease's end, a timestamptz
//	{key}                of q: what its lease is ordered and found by
//	{key(} {)key}        around a timestamptz that {key} is compared with
//	{maximum}            of q: the attempts that a job may have, or NULL
//	{limit} {step}       what the counter may come to; what a reap adds to it
//	{letter_attempts}    the attempts that a dead letter has
//	{counter_label}      the counter's name, as a literal
//	{only_columns}       further conditions of a row that is the reaper's
//	{set_reset}          assignments of a reset, from the delay and the counter of u
//	{set_close}          those of a move; {set_closed} without the counter
//	{is_reset} {is_closed}  whether q is in the state of a reset, or of a move
//	{to_leased}          assigns the state of a leased row, in front of another assignment
//	{start(} {)start}    around a timestamptz that is to be the lease's end
//	{touch} {renew}      assignments that leave a row as it is
//	{counted}            whether q has the counter of u
//	{counted_once}       whether q has the attempts of p, of a plan, as a reap leaves them
//	{lost}               further columns of a claim: the lost leases, where they are counted, and
//	                     the scheduled time, for its type, where times are in UTC
//	{is_dead}            whether q is the row of a dead job
//	{only_dead}          further conditions of such a row that is the reaper's
//	{is_requeued}        whether q is a row that a redrive has written
//	{set_requeue}        assignments of a redrive, from the waits in $2
//	{reaped}             whether q has one of the last errors $2
func (q Queue) Names() *pgtext.Names {
	b := newBuilder(q)
	b.columns()
	b.times()
	b.lease()
	b.count()
	b.updates()
	b.setNames()
	return &b.Names
}

// LetterNames returns those of them that the insert of a letter needs, for rows in which
// the attempt was counted already. Only the names that they are made of are checked.
func (q Queue) LetterNames() *pgtext.Names {
	q.LostLeases = ""
	b := newBuilder(q)
	b.columns()
	b.count()
	return &b.Names
}

// builder adds the placeholders of a queue. Its names are quoted.
type builder struct {
	pgtext.Names

	q                                 Queue
	state, leased, retrying, dead     string
	attempts, counter, scheduledAt    string
	owner, leaseUntil, lastError, now string
}

func newBuilder(q Queue) *builder {
	b := &builder{q: q}
	b.Name("queue", q.Table)
	b.Column("job_id", q.JobID)
	b.attempts = b.Column("attempts", q.Attempts)
	b.counter = b.attempts
	if q.LostLeases != "" {
		b.counter = b.Column("lost_leases", q.LostLeases)
	}
	b.now = b.inUTC("now()")
	return b
}

func (b *builder) columns() {
	kind, text := "''", ""
	if b.q.JobKind != "" {
		kind = "q." + b.Column("job_kind", b.q.JobKind)
		text = "coalesce(" + kind + "::text, '')"
	}
	b.Add("kind", kind)
	b.Add("text", text)
	b.Add("now", b.now)
}

// times adds the state, the times, the owner and the last error.
func (b *builder) times() {
	q, owner, reaped := b.q, "null::text", " and false"
	if q.State != "" {
		b.state = b.Column("state", q.State)
		b.leased, b.retrying = b.Label("leased", q.Leased), b.Label("retry_waiting", q.RetryWaiting)
		b.dead = b.Label("dead_state", q.DeadLetter)
	}
	b.scheduledAt = b.Column("scheduled_at", q.ScheduledAt)
	b.leaseUntil = b.Column("lease_until", q.LeaseUntil)
	if q.LeaseOwner != "" {
		b.owner = b.Column("lease_owner", q.LeaseOwner)
		owner = "q." + b.owner + "::text"
	}
	if q.LastError != "" {
		b.lastError = b.Column("last_error", q.LastError)
		reaped = " and q." + b.lastError + " = any($2::text[])"
	}
	b.Add("owner", owner)
	b.Add("reaped", reaped)
	b.Add("scheduled", b.inUTC("q."+b.scheduledAt))
	b.Add("only_columns", b.conditions(q.Only))
}

// inUTC turns a timestamptz into what the time columns hold, and back.
func (b *builder) inUTC(sql string) string {
	if b.q.TimesInUTC {
		return "(" + sql + " at time zone 'utc')"
	}
	return sql
}
