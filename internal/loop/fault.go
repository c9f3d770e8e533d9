package loop

import (
	"errors"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Fault is what an error says of the database.
type Fault int

const (
	// Other says nothing of it.
	Other Fault = iota

	// Outage says that workers may have been unable to renew their leases too.
	Outage

	// TimedOut says that it took too long. No worker waits longer than a poll
	// does; an apply may have had too much to do.
	TimedOut
)

// FaultOf tells what an error that the server answered with says of the database.
func FaultOf(err error) Fault {
	var rejected *allRejectedError
	if errors.As(err, &rejected) {
		return faultOfState(rejected.sqlState)
	}
	return faultOfState(pgtx.Code(err))
}

// faultOfState tells what an SQLSTATE says of the database. No worker can write to
// the queue either when it is read-only, lacks disk or memory, or has I/O errors,
// or, maybe, when somebody's lock was in the way.
func faultOfState(sqlState string) Fault {
	switch {
	case sqlState == pgtx.CodeQueryCanceled:
		return TimedOut
	case sqlState == pgtx.CodeReadOnly, sqlState == pgtx.CodeLockNotAvailable,
		pgtx.Class(sqlState) == "53", pgtx.Class(sqlState) == "58":
		return Outage
	}
	return Other
}

// AllRejected finds out whether a drain settled no job at all, and some were
// rejected for what may be no row's fault: for such a reason a trigger can reject
// one row, but then others go through.
type AllRejected struct {
	settled  bool
	sqlState string
}

// Settled says that a job went through.
func (a *AllRejected) Settled() { a.settled = true }

// Add adds a job that was rejected. A lock that made it fail is one of a row.
func (a *AllRejected) Add(job Rejection) {
	ofRow := job.SQLState == pgtx.CodeLockNotAvailable
	if a.sqlState == "" && !ofRow && faultOfState(job.SQLState) != Other {
		a.sqlState = job.SQLState
	}
}

// Err is nil unless all jobs were rejected so. Its fault is the first one's.
func (a *AllRejected) Err() error {
	if a.settled || a.sqlState == "" {
		return nil
	}
	return &allRejectedError{a.sqlState}
}

// allRejectedError is the error of a drain in which no job went through.
type allRejectedError struct{ sqlState string }

func (e *allRejectedError) Error() string {
	return "reaper: no job was reset or moved: SQLSTATE " + e.sqlState
}
