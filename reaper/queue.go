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

// Quoted returns the mapping as package deadletter takes it, in a
// [deadletter.Store]: names and states quoted as SQL. It does no I/O. Its error
// holds every fault at once, as that of [New].
func (t Table) Quoted() (deadletter.Queue, error) {
	t = t.withDefaults()
	var n names
	queue := t.quote(&n)
	if err := errors.Join(append(n.faults, t.distinct()...)...); err != nil {
		return deadletter.Queue{}, err
	}
	return queue, nil
}

// quote quotes the queue's names.
func (t Table) quote(n *names) deadletter.Queue {
	return deadletter.Queue{
		Table:        n.name("queue", t.Name),
		JobID:        n.column("job_id", t.Columns.JobID),
		JobKind:      n.optional("kind", "''", "q.%s", "job_kind", t.Columns.JobKind),
		Attempts:     n.column("attempts", t.Columns.Attempts),
		MaxAttempts:  n.column("max_attempts", t.Columns.MaxAttempts),
		State:        n.column("state", t.Columns.State),
		ScheduledAt:  n.column("scheduled_at", t.Columns.ScheduledAt),
		LeaseOwner:   n.column("lease_owner", t.Columns.LeaseOwner),
		LeaseUntil:   n.column("lease_until", t.Columns.LeaseUntil),
		LastError:    n.optional("set_error", "", ",\n  %s = $2", "last_error", t.Columns.LastError),
		Leased:       n.label("leased", t.States.Leased),
		RetryWaiting: n.label("retry_waiting", t.States.RetryWaiting),
		DeadLetter:   n.label("dead_letter", t.States.DeadLetter),
	}
}

// render puts the names of the queue and of the dead-letter table, quoted once,
// into the statements. Its error holds every fault at once.
func (t Table) render(s scope, letters pgx.Identifier) (statements, deadletter.Queue, error) {
	var n names
	queue := t.quote(&n)
	kind, reaped := queue.JobKind, " and false"
	if kind != "" {
		kind = "coalesce(q." + kind + "::text, '')"
	}
	if queue.LastError != "" {
		reaped = " and q." + queue.LastError + " = $2"
	}
	n.add("text", kind, nil)
	n.add("reaped", reaped, nil)
	label, _ := pgtext.Label(t.Columns.Attempts) // its fault is the column's, reported already
	n.add("attempts_label", label, nil)
	name, _ := pgtext.Name(letters) // its fault is the mover's to report
	n.add("letters", name, nil)
	pairs := s.pairs(n.pairs)
	in := strings.NewReplacer(pairs...).Replace
	return statements{
		dryRun:      in(sqlDryRun),
		dryRunUpTo:  in(sqlDryRunUpTo),
		drift:       in(sqlDrift),
		overfull:    in(sqlOverfull),
		poll:        in(sqlPoll),
		tryWrite:    in(sqlTryWrite),
		rehearse:    strings.NewReplacer(append(pairs, "{address}", "null::tid")...).Replace(sqlRehearse),
		closeMoved:  in(sqlCloseMoved),
		unclosed:    in(sqlUnclosed),
		lockQueue:   in(sqlLockQueue),
		lockLetters: in(sqlLockLetters),
		stale:       in(stale),
		byAddress:   renderRows(pairs, `q.ctid`, matchAddress),
		byKey:       renderRows(pairs, `null::tid`, matchKey),
	}, queue, errors.Join(append(n.faults, t.distinct()...)...)
}

// renderRows puts the names, and the way to find a row, into the statements.
func renderRows(pairs []string, address, match string) rowStatements {
	in := strings.NewReplacer(pairs...).Replace
	rows := strings.NewReplacer("{address}", address, "{match}", match).Replace
	still := letter.Match(match + " and " + still)
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

// distinct reports columns, and states, that stand for two things at once. A
// queue whose retry state is its leased one would lose its jobs.
func (t Table) distinct() []error {
	c, s := t.Columns, t.States
	columns := []string{
		c.JobID, c.JobKind, c.State, c.Attempts, c.MaxAttempts, c.ScheduledAt, c.LeaseOwner, c.LeaseUntil, c.LastError,
	}
	return append(twice("column", columns), twice("state", []string{s.Leased, s.RetryWaiting, s.DeadLetter})...)
}

// twice reports each name that a list has twice.
func twice(what string, names []string) []error {
	var faults []error
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] && name != None { // more than one column may be missing
			faults = append(faults, fmt.Errorf("%w: %s %q", ErrAmbiguous, what, name))
		}
		seen[name] = true
	}
	return faults
}

// names collects pairs of placeholder and quoted name, and what is wrong with
// the names.
type names struct {
	pairs  []string
	faults []error
}

func (n *names) name(placeholder string, id pgx.Identifier) string {
	sql, err := pgtext.Name(id)
	return n.add(placeholder, sql, err)
}

func (n *names) column(placeholder, name string) string {
	return n.name(placeholder, pgx.Identifier{name})
}

// optional quotes the name of a column that may be missing, and adds SQL over it,
// or what stands for it when it is.
func (n *names) optional(placeholder, without, with, field, name string) string {
	if name == None {
		n.add(placeholder, without, nil)
		return ""
	}
	column := n.column(field, name)
	n.add(placeholder, fmt.Sprintf(with, column), nil)
	return column
}

func (n *names) label(placeholder, label string) string {
	sql, err := pgtext.Label(label)
	return n.add(placeholder, sql, err)
}

func (n *names) add(placeholder, sql string, err error) string {
	if err != nil {
		n.faults = append(n.faults, fmt.Errorf("reaper: queue: %s: %w", placeholder, err))
	}
	n.pairs = append(n.pairs, "{"+placeholder+"}", sql)
	return sql
}
