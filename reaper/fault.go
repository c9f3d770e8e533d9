package reaper

import (
	"errors"

	"github.com/lease-governance/leasereaper/internal/loop"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// errTooLong is wrapped by the error of a loop's apply that reached applyTimeout.
var errTooLong = errors.New("reaper: the apply took too long")

// faultOf tells what an error says of the database. The gates of a source of the
// caller's own may be in another one.
func faultOf(err error) loop.Fault {
	var source *sourceError
	var rejected *allRejectedError
	var blocked *blockedError
	switch {
	case errors.Is(err, errTooLong):
		return loop.TimedOut
	case isUnreachable(err):
		return loop.Outage
	case errors.As(err, &source):
		return loop.Other
	case errors.As(err, &blocked) && pgtx.Code(err) == pgtx.CodeLockNotAvailable:
		return loop.Other // the dead letters' table is locked
	case errors.As(err, &rejected):
		return faultOfState(rejected.failure.SQLState)
	case pgtx.Code(err) != "":
		return faultOfState(pgtx.Code(err))
	}
	return loop.Other
}

// faultOfState tells what an SQLSTATE says of the database. No worker can write to
// the queue either when it is read-only, lacks disk or memory, or has I/O errors,
// or, maybe, when somebody's lock was in the way.
func faultOfState(sqlState string) loop.Fault {
	switch {
	case sqlState == pgtx.CodeQueryCanceled:
		return loop.TimedOut
	case sqlState == pgtx.CodeReadOnly, sqlState == pgtx.CodeLockNotAvailable,
		pgtx.Class(sqlState) == "53", pgtx.Class(sqlState) == "58":
		return loop.Outage
	}
	return loop.Other
}

// allRejected finds out whether a drain settled no job at all, and some were
// rejected for what may be no row's fault: for such a reason a trigger can reject
// one row, but then others go through. A lock that made a job fail is one of a row.
type allRejected struct {
	settled bool
	failure *Failure
}

func (a *allRejected) add(result *ApplyResult) {
	a.settled = a.settled || len(result.Actions) > 0
	for i := range result.Failures {
		failure := &result.Failures[i]
		ofRow := failure.SQLState == pgtx.CodeLockNotAvailable
		if a.failure == nil && !ofRow && faultOfState(failure.SQLState) != loop.Other {
			a.failure = failure
		}
	}
}

func (a *allRejected) err() error {
	if a.settled || a.failure == nil {
		return nil
	}
	return &allRejectedError{*a.failure}
}

// allRejectedError is the error of a drain in which no job went through.
type allRejectedError struct{ failure Failure }

func (e *allRejectedError) Error() string {
	return "reaper: no job went through: SQLSTATE " + e.failure.SQLState
}

// isUnreachable tells an error of the connection from one of the caller's code or the
// server's.
func isUnreachable(err error) bool {
	var hook *hookError
	var mover *moverError
	var source *sourceError
	if errors.As(err, &mover) { // its SQLSTATE may be another server's
		return false
	}
	if pgtx.Code(err) == "" && (errors.As(err, &hook) || errors.As(err, &source) || errors.Is(err, errTooLong)) {
		return false
	}
	return errors.Is(err, ErrOutcomeUnknown) || pgtx.IsUnreachable(err)
}
