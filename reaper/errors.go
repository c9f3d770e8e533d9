package reaper

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lease-governance/leasereaper/internal/loop"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

var (
	// ErrNilDB is New's error for a DB that is nil, or holds a nil pointer.
	ErrNilDB = errors.New("reaper: db is nil")

	// ErrNilPart is wrapped by New's error for each of Gates, DeadLetter and Backoff
	// that is not nil and holds a nil pointer or a nil function.
	ErrNilPart = errors.New("reaper: nil pointer or function")

	// ErrNegative is wrapped by the error for each setting that is negative.
	ErrNegative = errors.New("reaper: negative setting")

	// ErrLimit is wrapped by the error for a limit below 1.
	ErrLimit = errors.New("reaper: limit is below 1")

	// ErrActor is wrapped by the error for an actor that PostgreSQL cannot
	// store as text: one with a NUL, or that is not UTF-8; by Run's also for an
	// empty one.
	ErrActor = errors.New("reaper: invalid actor")

	// ErrDuplicateName is wrapped by New's error for each column or state that the
	// mapping names for two things at once.
	ErrDuplicateName = errors.New("reaper: queue: duplicate name")

	// ErrMapping is wrapped by New's error for each part of Config.Queue that cannot
	// be, alone or with another part.
	ErrMapping = errors.New("reaper: queue: impossible mapping")

	// ErrGrace is wrapped by New's error for each grace that is above 0 and below a
	// microsecond.
	ErrGrace = errors.New("reaper: grace is below a microsecond")

	// ErrLockTimeout is wrapped by New's error for a LockTimeout that PostgreSQL's
	// lock_timeout cannot hold.
	ErrLockTimeout = errors.New("reaper: lock timeout is above 2147483647 ms")

	// ErrKind is wrapped by New's error for each kind that no job can have: one
	// with a NUL, or that is not UTF-8, or any where the queue has no kinds; also
	// for Kinds that are empty and not nil.
	ErrKind = errors.New("reaper: invalid kind")

	// ErrPlan is wrapped by the error for a plan that cannot be one.
	ErrPlan = errors.New("reaper: invalid plan")

	// ErrInvalidIntervals is wrapped by Run's error for a MinInterval above Interval.
	ErrInvalidIntervals = errors.New("reaper: MinInterval is above Interval, which is 30s unless set")

	// ErrInTransaction is Run's error for a Reaper whose DB is a transaction.
	ErrInTransaction = errors.New("reaper: Run needs a pool or a connection, not a transaction")

	// ErrReadOnly is wrapped by the error of an apply on a hot standby, or on a
	// connection whose transactions are read-only.
	ErrReadOnly = errors.New("reaper: the transaction is read-only")

	// ErrLeaseType is wrapped by the error of a call that finds a lease's end
	// which is not a timestamp with time zone.
	ErrLeaseType = errors.New("reaper: the lease_until column is not a timestamptz")

	// ErrOutcomeUnknown is wrapped by the error of an apply whose connection
	// broke, or whose context ended, during the exchange that commits, which also
	// holds the last writes unless there is an OnApply or a mover in Go: it
	// happened whole or not at all, and nobody can know which. Any other error
	// means that nothing has changed. Calling again is safe either way: what was
	// reaped is not stale any more.
	ErrOutcomeUnknown = errors.New("reaper: connection broke during commit, outcome unknown")

	// ErrReceiptCount is wrapped by the error of an apply whose mover did not
	// return exactly one receipt for each job.
	ErrReceiptCount = errors.New("reaper: mover did not return one receipt for each job")
)

// settleError is an error that came while jobs were settled, or, from a deferred
// constraint, at the commit.
type settleError struct {
	err      error
	atCommit bool
}

func (e *settleError) Error() string { return e.err.Error() }
func (e *settleError) Unwrap() error { return e.err }

// claimError is an error of the exchange that claims.
type claimError struct{ err error }

func (e *claimError) Error() string { return fmt.Sprintf("reaper: claim stale leases: %v", e.err) }
func (e *claimError) Unwrap() error { return e.err }

// blockedError is the error of an apply whose jobs were all to be moved, and none
// could be.
type blockedError struct{ err error }

func (e *blockedError) Error() string { return e.err.Error() }
func (e *blockedError) Unwrap() error { return e.err }

// wrapReadOnly marks the errors that have a sentinel of the library's.
func wrapReadOnly(err error) error {
	if pgtx.Code(err) == pgtx.CodeReadOnly {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}

func checkLimit(limit int) error {
	if limit < 1 {
		return fmt.Errorf("%w: %d", ErrLimit, limit)
	}
	return nil
}

func checkActor(actor string) error {
	if !utf8.ValidString(actor) || strings.ContainsRune(actor, 0) {
		return fmt.Errorf("%w: %q is not text", ErrActor, actor)
	}
	return nil
}

// recoverPanic calls code of the caller's. A panic in it becomes an error, since it
// would end a service because of one job. An error that was panicked with can be
// told by errors.Is.
func recoverPanic(what string, call func() error) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		cause, ok := p.(error)
		if !ok {
			cause = fmt.Errorf("%v", p)
		}
		err = fmt.Errorf("%s panicked: %w", what, cause)
	}()
	return call()
}

// moverError is an error of the mover's while the connection was sound.
type moverError struct{ err error }

func (e *moverError) Error() string { return fmt.Sprintf("reaper: move to dead letters: %v", e.err) }
func (e *moverError) Unwrap() error { return e.err }

// hookError is an error of OnApply. It is the apply's error, whatever it wraps,
// unless that is a conflict.
type hookError struct{ err error }

func (e *hookError) Error() string { return fmt.Sprintf("reaper: OnApply: %v", e.err) }
func (e *hookError) Unwrap() error { return e.err }

// sourceError is an error of a source of the caller's own.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return fmt.Sprintf("reaper: read gates: %v", e.err) }
func (e *sourceError) Unwrap() error { return e.err }

// errTooLong is wrapped by the error of a loop's apply that reached applyTimeout.
var errTooLong = errors.New("reaper: the apply took longer than 5 minutes")

// faultOf tells what an error says of the database. The gates of a source of the
// caller's own may be in another one.
func faultOf(err error) loop.Fault {
	var source *sourceError
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
	}
	return loop.FaultOf(err)
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
