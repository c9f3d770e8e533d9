package reaper

import (
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

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
	if errors.As(err, &hook) || errors.As(err, &mover) || errors.As(err, &source) {
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
