package stmt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/letter"
	"github.com/lease-governance/leasereaper/internal/mapping"
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
	RehearseRow, Rehearse               string

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
func New(q mapping.Queue, s Scope, letters pgx.Identifier) (*Statements, error) {
	n := q.Names()
	atEdge := "false"
	if q.Step() > 0 {
		atEdge = strings.NewReplacer(n.Pairs...).Replace(condAtEdge)
	}
	n.Add("at_edge", atEdge)
	rehearsalNames(n, q)
	name, _ := pgtext.Name(letters)
	n.Add("letters", name)
	pairs := s.pairs(n.Pairs)
	all := render(pairs)
	if !q.MarksMoved() {
		all.CloseMoved = strings.NewReplacer(pairs...).Replace(sqlLeft)
	}
	return all, faults(*n)
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
		Table:           in("{queue}"),
		JobID:           in("{job_id}"),
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
		RehearseRow:     in(sqlRehearseRow),
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
