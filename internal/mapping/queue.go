// Package mapping turns the description of a queue into the names and expressions of
// SQL statements over it.
package mapping

import (
	"fmt"
	"strconv"
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

// Counter is the column in which a reap counts.
func (q Queue) Counter() string {
	if q.LostLeases != "" {
		return q.LostLeases
	}
	return q.Attempts
}

// Step is how much a reap adds to the counter: nothing where a claim has counted.
func (q Queue) Step() int {
	if q.CountsAtClaim && q.LostLeases == "" {
		return 0
	}
	return 1
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
//	{lost}               of q: a column with the lost leases, after others, where they are counted
//	{is_dead}            whether q is the row of a dead job
//	{set_requeue}        assignments of a redrive, from the waits in $2
//	{reaped}             whether q has the last error $2
func (q Queue) Names() *pgtext.Names {
	b := newBuilder(q)
	b.columns()
	b.times()
	b.lease()
	b.count()
	b.updates()
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
		reaped = " and q." + b.lastError + " = $2"
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

// maxSeconds is the longest lease that a column of seconds may ask for, more than 3000
// years. One that is longer, infinite or negative counts as NULL, which is never stale.
const maxSeconds = "100000000000"

// lease adds how a leased row is told, and its lease's end.
func (b *builder) lease() {
	column := "q." + b.leaseUntil
	isLeased, leasedAnd := column+" is not null", ""
	if b.state != "" {
		isLeased = "q." + b.state + " = " + b.leased
		leasedAnd = isLeased + " and "
	}
	end, key, before, after, seconds := b.inUTC(column), column, "", "", ""
	if b.q.TimesInUTC {
		before, after = "(", " at time zone 'utc')"
	}
	switch {
	case b.q.LeaseLength > 0:
		length := "interval '" + strconv.FormatInt(b.q.LeaseLength.Microseconds(), 10) + " microseconds'"
		end = "(" + end + " + " + length + ")"
		before, after = before+"(", " - "+length+")"+after
	case b.q.LeaseSeconds != "":
		seconds = "q." + b.Column("lease_seconds", b.q.LeaseSeconds)
		leasedAnd += column + " < " + b.now + " and "
		end = "(case when " + seconds + " between 0 and " + maxSeconds + " and " + end + " < '10000-01-01Z' then " +
			end + " + " + seconds + " * interval '1 second' end)"
		key, before, after = end, "", ""
	}
	b.Add("leased_and", leasedAnd)
	b.Add("is_leased", isLeased)
	b.Add("end", end)
	b.Add("key", key)
	b.Add("key(", before)
	b.Add(")key", after)
	b.touch(before, after, seconds)
}

// touch adds what makes a row stale, and what writes it as it is. The lease of a
// column of seconds without a length that can be is taken for one of an hour.
func (b *builder) touch(before, after, seconds string) {
	toLeased, renew := "", b.leaseUntil+" = q."+b.leaseUntil
	touch := renew
	if b.state != "" {
		toLeased = b.state + " = " + b.leased + ",\n  "
		touch = b.state + " = q." + b.state
		renew = touch + ",\n  " + renew
	}
	if seconds != "" {
		valid := "case when " + seconds + " between 0 and " + maxSeconds + " then " + seconds + " else 3600 end"
		toLeased += seconds[len("q."):] + " = " + valid + ",\n  "
		before, after = "(", " - ("+valid+") * interval '1 second')"
		if b.q.TimesInUTC {
			before, after = "("+before, after+" at time zone 'utc')"
		}
	}
	b.Add("to_leased", toLeased)
	b.Add("touch", touch)
	b.Add("renew", renew)
	b.Add("start(", before)
	b.Add(")start", after)
}

// count adds what a reap counts, and what it may come to.
func (b *builder) count() {
	b.Add("counter", b.counter)
	maximum, attempts := b.maximum(), "u.attempts"
	limit, counted := "coalesce("+maximum+", 9223372036854775807)::bigint", "q."+b.counter+" = u.attempts"
	current, lost := "coalesce(q."+b.attempts+", 0)", ""
	once := "q." + b.attempts + " = p.attempts + 1"
	switch {
	case b.q.LostLeases != "":
		limit, attempts = strconv.Itoa(b.q.MaxLostLeases)+"::bigint", current
		once, lost = current+" in (p.attempts, p.attempts - 1)", ",\n  coalesce(q."+b.counter+", 0)::bigint as lost"
	case b.q.CountsAtClaim:
		counted, once = current+" = u.attempts", current+" = p.attempts"
	}
	b.Add("counted_once", once)
	b.Add("lost", lost)
	b.Add("maximum", maximum)
	b.Add("limit", limit)
	b.Add("step", strconv.Itoa(b.q.Step()))
	b.Add("counted", counted)
	b.Add("letter_attempts", attempts)
	label, _ := pgtext.Label(b.q.Counter()) // its fault is the column's, reported already
	b.Add("counter_label", label)
}

// maximum is the maximum of attempts of q, or NULL.
func (b *builder) maximum() string {
	if b.q.MaxAttempts == "" {
		return strconv.Itoa(b.q.Maximum) + "::bigint"
	}
	sql := "q." + b.Column("max_attempts", b.q.MaxAttempts)
	if extra := b.q.ExtraAttempts; extra > 0 {
		sql = fmt.Sprintf("(least(%s::bigint, 9223372036854775807 - %d) + %[2]d)", sql, extra)
	}
	if b.q.Maximum > 0 {
		sql = fmt.Sprintf("coalesce(%s::bigint, %d)", sql, b.q.Maximum)
	}
	return sql
}
