package loop

import (
	"errors"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Fault classifies an error by what it means for the workers.
type Fault int

const (
	// Other is no error, or one that does not affect workers.
	Other Fault = iota

	// Outage is an error during which workers may be unable to renew their leases.
	Outage

	// TimedOut is a time-out. After a poll it counts as an outage. After an apply the
	// batch may have been too large.
	TimedOut
)

// FaultOf classifies an error that the server returned.
func FaultOf(err error) Fault {
	var rejected *allRejectedError
	if errors.As(err, &rejected) {
		return faultOfState(rejected.sqlState)
	}
	return faultOfState(pgtx.Code(err))
}

// faultOfState classifies an SQLSTATE. Workers cannot write to the queue either if the
// database is read-only, has no disk space or memory, or has I/O errors. After a lock
// time-out they may be unable to.
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

// AllRejected finds out whether a drain reset and moved no job, and rejected some with an
// SQLSTATE of an outage. A trigger can raise such an SQLSTATE for one row, but then other
// jobs succeed.
type AllRejected struct {
	succeeded bool
	sqlState  string
}

// Succeeded records that a job was reset or moved.
func (a *AllRejected) Succeeded() { a.succeeded = true }

// Add adds a rejected job. A lock time-out does not count: it is from a row lock.
func (a *AllRejected) Add(job Rejection) {
	ofRow := job.SQLState == pgtx.CodeLockNotAvailable
	if a.sqlState == "" && !ofRow && faultOfState(job.SQLState) != Other {
		a.sqlState = job.SQLState
	}
}

// Err returns nil if a job succeeded or none was rejected so. Otherwise it returns an error
// with the fault of the first rejected job.
func (a *AllRejected) Err() error {
	if a.succeeded || a.sqlState == "" {
		return nil
	}
	return &allRejectedError{a.sqlState}
}

// allRejectedError is the error of a drain that has reset and moved no job.
type allRejectedError struct{ sqlState string }

func (e *allRejectedError) Error() string {
	return "reaper: no job was reset or moved: SQLSTATE " + e.sqlState
}
