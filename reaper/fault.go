package reaper

import (
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/internal/loop"
)

// SQLSTATEs that a loop knows.
const (
	lockNotAvailable = "55P03"
	queryCanceled    = "57014"
)

// errTooLong is wrapped by the error of a loop's apply that reached applyTimeout.
var errTooLong = errors.New("reaper: the apply took too long")

// faultOf tells what an error says of the database. The gates of a source of the
// caller's own may be in another one.
func faultOf(err error) loop.Fault {
	var pgErr *pgconn.PgError
	var source *sourceError
	var rejected *allRejectedError
	switch {
	case errors.Is(err, errTooLong):
		return loop.TimedOut
	case unreachable(err):
		return loop.Outage
	case errors.As(err, &source):
		return loop.Other
	case errors.As(err, &rejected):
		return faultOfState(rejected.failure.SQLState)
	case errors.As(err, &pgErr):
		return faultOfState(pgErr.Code)
	}
	return loop.Other
}

// faultOfState tells what an SQLSTATE says of the database. No worker can write to
// the queue either when it is read-only, lacks disk or memory, or has I/O errors,
// or, maybe, when somebody's lock was in the way.
func faultOfState(sqlState string) loop.Fault {
	switch {
	case sqlState == queryCanceled:
		return loop.TimedOut
	case sqlState == readOnly, sqlState == lockNotAvailable, class(sqlState) == "53", class(sqlState) == "58":
		return loop.Outage
	}
	return loop.Other
}

// allRejected finds out whether a drain settled no job at all, and some were
// rejected for what may be no row's fault: for such a reason a trigger can reject
// one row, but then others go through.
type allRejected struct {
	settled bool
	failure *Failure
}

func (a *allRejected) add(result *ApplyResult) {
	a.settled = a.settled || len(result.Actions) > 0
	for i := range result.Failures {
		if a.failure == nil && faultOfState(result.Failures[i].SQLState) != loop.Other {
			a.failure = &result.Failures[i]
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

// unreachable tells an error of the connection from one of the server's, of the
// caller's code, or of the settings. A FATAL error of the server's ends the
// connection. A time-out is one of the connection: the server did not answer.
func unreachable(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return !isError(pgErr) || class(pgErr.Code) == "08"
	}
	var hook *hookError
	var mover *moverError
	var source *sourceError
	if errors.As(err, &hook) || errors.As(err, &mover) || errors.As(err, &source) || errors.Is(err, errTooLong) {
		return false
	}
	return errors.Is(err, ErrOutcomeUnknown) || pgconn.SafeToRetry(err) || isBroken(err)
}

// isBroken reports what package net, or pgx, says of a connection that ended.
func isBroken(err error) bool {
	var network net.Error
	if errors.As(err, &network) {
		return true
	}
	for _, broken := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed} {
		if errors.Is(err, broken) {
			return true
		}
	}
	var connect *pgconn.ConnectError
	return errors.As(err, &connect)
}
