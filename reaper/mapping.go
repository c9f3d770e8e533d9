package reaper

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/mapping"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// validate reports every fault of a mapping with its defaults but those of its names,
// and whether the mover goes with it.
func (t Table) validate(mover deadletter.Mover) error {
	var m mappingFaults
	m.distinct(t.mapping())
	m.present(t.Columns)
	m.lease(t)
	m.counts(t)
	m.sets(t)
	m.stateless(t, mover)
	return errors.Join(m...)
}

// mappingFaults collects what is wrong with a mapping.
type mappingFaults []error

func (m *mappingFaults) add(sentinel error, format string, args ...any) {
	*m = append(*m, fmt.Errorf("%w: %s", sentinel, fmt.Sprintf(format, args...)))
}

// distinct reports columns, and states, that stand for two things at once. A
// queue whose retry state is its leased one would lose its jobs.
func (m *mappingFaults) distinct(q mapping.Queue) {
	for _, name := range pgtext.Twice(q.Columns()...) {
		m.add(ErrDuplicateName, "column %q", name)
	}
	if q.State == "" {
		return
	}
	for _, name := range pgtext.Twice(q.Leased, q.RetryWaiting, q.DeadLetter) {
		m.add(ErrDuplicateName, "state %q", name)
	}
}

// present reports columns that are said to be missing and may not be.
func (m *mappingFaults) present(c Columns) {
	for _, column := range []struct{ field, name string }{
		{"JobID", c.JobID}, {"Attempts", c.Attempts}, {"ScheduledAt", c.ScheduledAt}, {"LeaseUntil", c.LeaseUntil},
		{"LeaseSeconds", c.LeaseSeconds}, {"LostLeases", c.LostLeases},
	} {
		if column.name == None {
			m.add(ErrMapping, "Columns.%s cannot be None", column.field)
		}
	}
}

func (m *mappingFaults) lease(t Table) {
	switch {
	case t.LeaseLength < 0:
		m.add(ErrNegative, "LeaseLength %v", t.LeaseLength)
	case t.LeaseLength > 0 && t.LeaseLength < time.Microsecond:
		m.add(ErrMapping, "LeaseLength %v is below a microsecond", t.LeaseLength)
	case t.LeaseLength > 0 && t.Columns.LeaseSeconds != "":
		m.add(ErrMapping, "LeaseLength and Columns.LeaseSeconds are both set")
	}
}

func (m *mappingFaults) counts(t Table) {
	for _, count := range []struct {
		name  string
		value int
	}{{"MaxAttempts", t.MaxAttempts}, {"ExtraAttempts", t.ExtraAttempts}, {"MaxLostLeases", t.MaxLostLeases}} {
		if count.value < 0 {
			m.add(ErrNegative, "%s %d", count.name, count.value)
		}
	}
	if t.Columns.MaxAttempts == None {
		if t.MaxAttempts == 0 {
			m.add(ErrMapping, "without a column of maximums MaxAttempts is needed")
		}
		if t.ExtraAttempts > 0 {
			m.add(ErrMapping, "ExtraAttempts is added to a column, and there is none")
		}
	}
	if (t.Columns.LostLeases != "") != (t.MaxLostLeases != 0) {
		m.add(ErrMapping, "Columns.LostLeases and MaxLostLeases need each other")
	}
}

// sets reports values that a set cannot have, and columns that are written twice.
func (m *mappingFaults) sets(t Table) {
	q := t.mapping()
	m.set("OnReset", t.OnReset, q, []string{q.JobID, q.State, q.ScheduledAt, q.LastError, q.Attempts, q.LostLeases})
	m.set("OnMove", t.OnMove, q, []string{q.JobID, q.State, q.LastError, q.Counter()})
	for _, column := range slices.Sorted(maps.Keys(t.Only)) {
		m.value("Only", column, t.Only[column])
		if _, special := t.Only[column].(mapping.Special); special {
			m.add(ErrMapping, "Only: column %q: Now and Keep are not compared with", column)
		}
	}
}

func (m *mappingFaults) value(name, column string, value any) {
	if err := mapping.CheckValue(value); err != nil {
		m.add(ErrMapping, "%s: column %q: %v", name, column, err)
	}
}

func (m *mappingFaults) set(name string, set Set, q mapping.Queue, written []string) {
	for _, column := range slices.Sorted(maps.Keys(set)) {
		m.value(name, column, set[column])
		ofLease := column == q.LeaseUntil || column == q.LeaseOwner
		switch {
		case set[column] != Keep && (ofLease || slices.Contains(written, column)):
			m.add(ErrMapping, "%s: column %q is written already", name, column)
		case set[column] != Keep:
		case !ofLease:
			m.add(ErrMapping, "%s: column %q: only the lease's column and the owner's can be kept", name, column)
		case q.State == "" && column == q.LeaseUntil:
			m.add(ErrMapping, "%s: column %q cannot be kept, as the row would stay leased", name, column)
		}
	}
}

// stateless reports a queue without states in which a moved job cannot be told from a
// free one.
func (m *mappingFaults) stateless(t Table, mover deadletter.Mover) {
	if t.mapping().MarksMoved() {
		return
	}
	if len(t.OnMove) > 0 {
		m.add(ErrMapping, "without a column of states OnMove must give a column a value that no free job has there")
		return
	}
	switch mover.(type) {
	case deadletter.Table, deadletter.InPlace:
		m.add(ErrMapping, "without a column of states a moved job needs an OnMove, or a mover that removes the row")
	}
}
