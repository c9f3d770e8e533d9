package deadletter

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/mapping"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Queue names the queue's table, its columns and its states; what is made of them in
// a statement is quoted. Its zero value is the reference schema's job_queue. JobKind,
// LastError and LostLeases are empty when another queue has no such column, and a dead
// letter's kind is then empty too; State, MaxAttempts and LeaseOwner are then "-". The
// other fields mean what they mean in the reaper's Table, whose method DeadLetterQueue
// gives all of this for a mapped queue.
type Queue struct {
	Table                                                 pgx.Identifier
	JobID, JobKind, Attempts, MaxAttempts                 string
	State, ScheduledAt, LeaseOwner, LeaseUntil, LastError string
	LostLeases                                            string

	Leased, RetryWaiting, DeadLetter string

	Maximum       int // Table.MaxAttempts: of jobs for which the column has none
	ExtraAttempts int
	TimesInUTC    bool
	Only          map[string]any // limits the letters that are in place
	OnReset       map[string]any // written by a redrive
	OnMove        map[string]any // tells a dead job where State is "-"
}

// mapping is the description that the statements are made of.
func (q Queue) mapping() mapping.Queue {
	return mapping.Queue{
		Table: q.Table, JobID: q.JobID, JobKind: q.JobKind, State: unlessNone(q.State), ScheduledAt: q.ScheduledAt,
		Attempts: q.Attempts, MaxAttempts: unlessNone(q.MaxAttempts), LostLeases: q.LostLeases,
		LeaseOwner: unlessNone(q.LeaseOwner), LeaseUntil: q.LeaseUntil, LastError: q.LastError,
		Leased: cmp.Or(q.Leased, "leased"), RetryWaiting: q.RetryWaiting, DeadLetter: q.DeadLetter,
		Maximum: q.Maximum, ExtraAttempts: q.ExtraAttempts, TimesInUTC: q.TimesInUTC,
		Only: q.Only, OnReset: q.OnReset, OnMove: q.OnMove,
	}
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

// none is the name of a column that the queue does not have.
const none = "-"

func unlessNone(name string) string {
	if name == none {
		return ""
	}
	return name
}

// letterNames are the names that a mover needs.
func (q Queue) letterNames() *pgtext.Names {
	n := q.mapping().LetterNames()
	q.present(n, "max_attempts", q.MaxAttempts)
	return n
}

// allNames are those that a store needs.
func (q Queue) allNames() *pgtext.Names {
	n := q.mapping().Names()
	q.present(n, "max_attempts", q.MaxAttempts)
	q.present(n, "state", q.State)
	q.present(n, "lease_owner", q.LeaseOwner)
	if q.State == "" {
		q.present(n, "retry_waiting", q.RetryWaiting)
		q.present(n, "dead_letter", q.DeadLetter)
	}
	return n
}

// present reports a name that is missing, and is not said to be.
func (Queue) present(n *pgtext.Names, what, name string) {
	if name == "" {
		n.Faults = append(n.Faults, fmt.Errorf("%s: it is empty", what))
	}
}

// columns are the named columns, empty for one that the queue does not have.
func (q Queue) columns() []string {
	return []string{
		q.JobID, q.JobKind, unlessNone(q.MaxAttempts), unlessNone(q.State), q.Attempts, q.ScheduledAt,
		unlessNone(q.LeaseOwner), q.LeaseUntil, q.LastError, q.LostLeases,
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

// validate reports names that stand for two things at once, values that no column can
// have, and dead jobs in place that nothing tells from others.
func (q Queue) validate(inPlace bool) error {
	var faults []error
	for _, name := range append(pgtext.Twice(q.columns()...), pgtext.Twice(q.Leased, q.RetryWaiting, q.DeadLetter)...) {
		faults = append(faults, fmt.Errorf("%w: %q stands for two things", ErrQueue, name))
	}
	for _, set := range []map[string]any{q.Only, q.OnReset, q.OnMove} {
		for _, column := range slices.Sorted(maps.Keys(set)) {
			if err := mapping.CheckValue(set[column]); err != nil {
				faults = append(faults, fmt.Errorf("%w: column %q: %w", ErrQueue, column, err))
			}
		}
	}
	if inPlace && !q.mapping().MarksMoved() {
		faults = append(faults, fmt.Errorf("%w: it has no state, and no OnMove that tells dead jobs", ErrQueue))
	}
	return errors.Join(faults...)
}

// checkRevives reports a queue whose dead jobs would be taken for dead after a redrive.
func (q Queue) checkRevives() error {
	if m := q.orReference().mapping(); m.MarksMoved() && !m.Unmarks() {
		return fmt.Errorf("%w: its OnReset leaves what OnMove wrote: a redriven job would stay dead", ErrQueue)
	}
	return nil
}
