package stmt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/letter"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Statements are the SQL texts with the queue's names in them.
type Statements struct {
	Table, JobID string // quoted names of the queue
	Stale        string // the condition of a stale lease

	DryRun, DryRunUpTo, ExceedsMaxStale string
	Poll, TryWrite                      string
	SkipReasons                         string
	CloseMoved, Unclosed                string
	LockQueue, LockLetters              string
	Rehearse                            string

	ByAddress, ByKey Rows
}

// Rows are the statements that find rows by their addresses, or by their keys.
type Rows struct {
	Claim, ClaimNotRejected, ClaimPlan string
	Reset, Bump, Close                 string
	ResetChecked, CloseChecked         string
	Insert, InsertJSONB                string // for documents of type json or text, and jsonb
	InsertChecked, InsertJSONBChecked  string
}

// New puts the names of a queue and of its dead-letter table, quoted once, into the
// statements. Its error holds every fault of the queue's names at once; letters is
// checked by who maps it.
func New(q deadletter.Queue, s Scope, letters pgx.Identifier) (*Statements, error) {
	var n pgtext.Names
	table, jobID := n.Name("queue", q.Table), n.Column("job_id", q.JobID)
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
	name, _ := pgtext.Name(letters)
	n.Add("letters", name)
	all := render(s.pairs(n.Pairs))
	all.Table, all.JobID = table, jobID
	return all, faults(n)
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

// faults are those of the names.
func faults(n pgtext.Names) error {
	var faults []error
	for _, fault := range n.Faults {
		faults = append(faults, fmt.Errorf("reaper: queue: %w", fault))
	}
	return errors.Join(faults...)
}

// render puts names into the statements.
func render(pairs []string) *Statements {
	in := strings.NewReplacer(pairs...).Replace
	return &Statements{
		Stale:           in(condStale),
		DryRun:          in(sqlDryRun),
		DryRunUpTo:      in(sqlDryRunUpTo),
		ExceedsMaxStale: in(sqlExceedsMaxStale),
		Poll:            in(sqlPoll),
		TryWrite:        in(sqlTryWrite),
		SkipReasons:     in(sqlSkipReasons),
		CloseMoved:      in(sqlCloseMoved),
		Unclosed:        in(sqlUnclosed),
		LockQueue:       in(sqlLockQueue),
		LockLetters:     in(sqlLockLetters),
		Rehearse:        strings.NewReplacer(append(pairs, "{address}", "null::tid")...).Replace(sqlRehearse),
		ByAddress:       renderRows(pairs, `q.ctid`, matchAddress),
		ByKey:           renderRows(pairs, `null::tid`, matchKey),
	}
}

// renderRows puts the names, and the way to find a row, into the statements.
func renderRows(pairs []string, address, match string) Rows {
	in := strings.NewReplacer(pairs...).Replace
	rows := strings.NewReplacer("{address}", address, "{match}", match).Replace
	still := letter.Match(match + " and " + condStaleByKey)
	return Rows{
		Claim:              in(rows(sqlClaim)),
		ClaimNotRejected:   in(rows(sqlClaimNotRejected)),
		ClaimPlan:          in(rows(sqlClaimPlan)),
		Reset:              in(rows(sqlReset)),
		Bump:               in(rows(sqlBump)),
		Close:              in(rows(sqlClose)),
		ResetChecked:       in(checked(rows(sqlReset))),
		CloseChecked:       in(checked(rows(sqlClose))),
		Insert:             in(letter.Insert(still, letter.JSON)),
		InsertJSONB:        in(letter.Insert(still, letter.JSONB)),
		InsertChecked:      in(letter.InsertChecked(still, letter.JSON)),
		InsertJSONBChecked: in(letter.InsertChecked(still, letter.JSONB)),
	}
}
