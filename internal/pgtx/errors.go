package pgtx

import (
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATEs, from the appendix "PostgreSQL Error Codes" of the manual.
const (
	CodeReadOnly         = "25006" // read_only_sql_transaction
	CodeCheckViolation   = "23514"
	CodeLockNotAvailable = "55P03"
	CodeQueryCanceled    = "57014" // also what statement_timeout raises
	CodeSerialization    = "40001"
	CodeDeadlock         = "40P01"
)

// ServerError returns the server's error that err wraps, or nil.
func ServerError(err error) *pgconn.PgError {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr
	}
	return nil
}

// Code returns the SQLSTATE of the server's error that err wraps, or "".
func Code(err error) string {
	if pgErr := ServerError(err); pgErr != nil {
		return pgErr.Code
	}
	return ""
}

// Class returns the class of a SQLSTATE, its first two characters.
func Class(code string) string { return code[:min(2, len(code))] }

// IsServerError reports whether err is a server's error that leaves the connection
// usable, not a FATAL one. PostgreSQL sends the untranslated severity since 9.6.
func IsServerError(err error) bool {
	pgErr := ServerError(err)
	return pgErr != nil && pgErr.SeverityUnlocalized == "ERROR"
}

// IsConflict reports whether err is a serialization failure, a deadlock, or a prepared
// statement that a change of the table made invalid. A retry may succeed.
func IsConflict(err error) bool {
	pgErr := ServerError(err)
	return pgErr != nil && (pgErr.Code == CodeSerialization || pgErr.Code == CodeDeadlock ||
		pgErr.Routine == "RevalidateCachedQuery")
}

// MaxConflicts is how often a transaction is retried after a conflict. Each deadlock
// costs the server's deadlock_timeout, by default a second.
const MaxConflicts = 5

// NotCommitted reports whether err, from a commit, proves that nothing was committed. A
// FATAL error proves nothing: a backend that is ended just after its commit sends one
// too.
func NotCommitted(err error) bool {
	if ServerError(err) != nil {
		return IsServerError(err)
	}
	var unsent pgx.ErrPreprocessingBatch // a statement could not be prepared
	return errors.As(err, &unsent) || errors.Is(err, pgx.ErrTxCommitRollback) ||
		errors.Is(err, errAborted) || errors.Is(err, errNotSent) || pgconn.SafeToRetry(err)
}

// IsUnreachable reports whether err is an error of the connection, not of a statement.
// A FATAL error counts, since it ends the connection. A time-out counts, since the
// server did not answer.
func IsUnreachable(err error) bool {
	if pgErr := ServerError(err); pgErr != nil {
		return !IsServerError(err) || Class(pgErr.Code) == "08"
	}
	var network net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || pgconn.SafeToRetry(err) {
		return true
	}
	for _, broken := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}

// MayConcernAll reports whether an error is of a class that rarely concerns one row:
// privileges, missing objects, resources, cancellation. A trigger or a policy can raise
// such an error for one row. So a caller relies on the class only if no row can be
// written.
func MayConcernAll(err error) bool {
	switch Class(Code(err)) {
	case "08", // connection exception
		"0A", // feature not supported
		"25", // invalid transaction state
		"26", // invalid SQL statement name
		"28", // invalid authorization
		"3D", // invalid catalog name
		"3F", // invalid schema name
		"40", // transaction rollback: serialization failure, deadlock
		"42", // syntax error or access rule violation: privileges, missing objects
		"53", // insufficient resources: disk full
		"55", // object not in prerequisite state: lock not available
		"57", // operator intervention: cancellation
		"58", // system error
		"F0", // configuration file error
		"XX": // internal error
		return true
	}
	return false
}
