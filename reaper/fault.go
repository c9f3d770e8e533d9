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
	switch {
	case errors.Is(err, errTooLong):
		return loop.TimedOut
	case unreachable(err):
		return loop.Outage
	case errors.As(err, &source) || !errors.As(err, &pgErr):
		return loop.Other
	case pgErr.Code == lockNotAvailable:
		return loop.Locked
	case pgErr.Code == queryCanceled:
		return loop.TimedOut
	case keepsWorkersOut(pgErr.Code):
		return loop.Outage
	}
	return loop.Other
}

// keepsWorkersOut reports whether no worker can write to the queue either: the
// database is read-only, or lacks disk or memory, or an I/O error came.
func keepsWorkersOut(sqlState string) bool {
	return sqlState == readOnly || class(sqlState) == "53" || class(sqlState) == "58"
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
