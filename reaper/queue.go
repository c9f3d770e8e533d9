package reaper

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/letter"
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

// statements are the SQL texts with the queue's names in them.
type statements struct {
	dryRun, dryRunUpTo, overfull, poll string
	drift, closeMoved, unclosed        string
	lockQueue, lockLetters             string
	tryWrite                           string // for Run
	rehearse                           string
	stale                              string // for Verify

	byAddress, byKey rowStatements
}

// rowStatements are those that find rows by their addresses, or by their keys.
type rowStatements struct {
	claim, claimOthers, claimPlan     string
	reset, bump, close                string
	resetChecked, closeChecked        string
	insert, insertJSONB               string // for documents of type json or text, and jsonb
	insertChecked, insertJSONBChecked string
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

// quotedQueue has names of the queue as SQL, for what Verify and Rehearse report.
type quotedQueue struct{ Table, JobID string }

// render puts the names of the queue and of the dead-letter table, quoted once,
// into the statements. Its error holds every fault at once.
func (t Table) render(s scope, letters pgx.Identifier) (statements, quotedQueue, error) {
	q := t.DeadLetterQueue()
	var n pgtext.Names
	quoted := quotedQueue{n.Name("queue", q.Table), n.Column("job_id", q.JobID)}
	n.Column("attempts", q.Attempts)
	n.Column("max_attempts", q.MaxAttempts)
	n.Column("state", q.State)
	n.Column("scheduled_at", q.ScheduledAt)
	n.Column("lease_owner", q.LeaseOwner)
	n.Column("lease_until", q.LeaseUntil)
	n.Label("leased", q.Leased)
	n.Label("retry_waiting", q.RetryWaiting)
	n.Label("dead_letter", q.DeadLetter)
	addOptional(&n, q)
	label, _ := pgtext.Label(q.Attempts) // its fault is the column's, reported already
	n.Add("attempts_label", label)
	name, _ := pgtext.Name(letters) // its fault is the mover's to report
	n.Add("letters", name)
	return statementsOf(s.pairs(n.Pairs)), quoted, errors.Join(append(distinct(q), faults(n)...)...)
}

// addOptional adds the columns that may be missing, and SQL over them.
func addOptional(n *pgtext.Names, q deadletter.Queue) {
	kind, text, setError, reaped := "''", "", "", " and false"
	if q.JobKind != "" {
		kind = "q." + n.Column("job_kind", q.JobKind)
		text = "coalesce(" + kind + "::text, '')"
	}
	if q.LastError != "" {
		column := n.Column("last_error", q.LastError)
		setError = ",\n  " + column + " = $2"
		reaped = " and q." + column + " = $2"
	}
	n.Add("kind", kind)
	n.Add("text", text)
	n.Add("set_error", setError)
	n.Add("reaped", reaped)
}

// statementsOf puts names into the statements.
func statementsOf(pairs []string) statements {
	in := strings.NewReplacer(pairs...).Replace
	return statements{
		dryRun:      in(sqlDryRun),
		dryRunUpTo:  in(sqlDryRunUpTo),
		drift:       in(sqlSkipReasons),
		overfull:    in(sqlExceedsMaxStale),
		poll:        in(sqlPoll),
		tryWrite:    in(sqlTryWrite),
		rehearse:    strings.NewReplacer(append(pairs, "{address}", "null::tid")...).Replace(sqlRehearse),
		closeMoved:  in(sqlCloseMoved),
		unclosed:    in(sqlUnclosed),
		lockQueue:   in(sqlLockQueue),
		lockLetters: in(sqlLockLetters),
		stale:       in(condStale),
		byAddress:   renderRows(pairs, `q.ctid`, matchAddress),
		byKey:       renderRows(pairs, `null::tid`, matchKey),
	}
}

// renderRows puts the names, and the way to find a row, into the statements.
func renderRows(pairs []string, address, match string) rowStatements {
	in := strings.NewReplacer(pairs...).Replace
	rows := strings.NewReplacer("{address}", address, "{match}", match).Replace
	still := letter.Match(match + " and " + condStaleByKey)
	return rowStatements{
		claim:              in(rows(sqlClaim)),
		claimOthers:        in(rows(sqlClaimOthers)),
		claimPlan:          in(rows(sqlClaimPlan)),
		reset:              in(rows(sqlReset)),
		bump:               in(rows(sqlBump)),
		close:              in(rows(sqlClose)),
		resetChecked:       in(checked(rows(sqlReset))),
		closeChecked:       in(checked(rows(sqlClose))),
		insert:             in(letter.Insert(still, letter.JSON)),
		insertJSONB:        in(letter.Insert(still, letter.JSONB)),
		insertChecked:      in(letter.InsertChecked(still, letter.JSON)),
		insertJSONBChecked: in(letter.InsertChecked(still, letter.JSONB)),
	}
}

// faults are those of the names.
func faults(n pgtext.Names) []error {
	var faults []error
	for _, fault := range n.Faults {
		faults = append(faults, fmt.Errorf("reaper: queue: %w", fault))
	}
	return faults
}

// distinct reports columns, and states, that stand for two things at once. A
// queue whose retry state is its leased one would lose its jobs.
func distinct(q deadletter.Queue) []error {
	var faults []error
	for _, name := range pgtext.Twice(
		q.JobID, q.JobKind, q.State, q.Attempts, q.MaxAttempts, q.ScheduledAt, q.LeaseOwner, q.LeaseUntil, q.LastError,
	) {
		faults = append(faults, fmt.Errorf("%w: column %q", ErrAmbiguous, name))
	}
	for _, name := range pgtext.Twice(q.Leased, q.RetryWaiting, q.DeadLetter) {
		faults = append(faults, fmt.Errorf("%w: state %q", ErrAmbiguous, name))
	}
	return faults
}
