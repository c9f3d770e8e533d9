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

	// ErrLeaseType is wrapped by the error of a call that finds a lease's end, or of an
	// apply that finds a time to run, which is not a timestamp with time zone; or, with
	// Table.TimesInUTC, one without.
	ErrLeaseType = errors.New("reaper: the lease_until column is not a timestamptz")

	// ErrOutcomeUnknown is wrapped by the error of an apply whose connection
	// broke, or whose context ended, during the exchange that commits. That exchange
	// also writes, on a pool or a connection without OnApply, if jobs are moved by
	// deadletter.Table or InPlace or none is moved. The apply happened whole or not
	// at all, and nobody can know which. Any other error means that nothing has
	// changed. Calling again is safe either way: what was reaped is not stale any
	// more.
	ErrOutcomeUnknown = errors.New("reaper: connection broke during commit, outcome unknown")

	// ErrReceiptCount is wrapped by the error of an apply whose mover did not
	// return exactly one receipt for each job.
	ErrReceiptCount = errors.New("reaper: mover did not return one receipt for each job")
)

// writeError is an error that came while jobs were written, or, from a deferred
// constraint, at the commit.
type writeError struct {
	err      error
	atCommit bool
}

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// prefixed says where an error comes from, unless it says so itself.
func prefixed(what string, err error) error {
	var mover *moverError
	if errors.As(err, &mover) || errors.Is(err, ErrReceiptCount) || errors.Is(err, ErrOutcomeUnknown) {
		return err
	}
	return fmt.Errorf("reaper: %s: %w", what, err)
}

// claimError is an error of the exchange that claims.
type claimError struct {
	err     error
	atGates bool // the gates were not read, so it is the settings' that are locked, say
}

func (e *claimError) Error() string { return fmt.Sprintf("reaper: claim stale leases: %v", e.err) }
func (e *claimError) Unwrap() error { return e.err }

// blockedError is the error of an apply whose jobs were all to be moved, and none
// could be.
type blockedError struct{ err error }

func (e *blockedError) Error() string { return e.err.Error() }
func (e *blockedError) Unwrap() error { return e.err }

// wrapReadOnly marks the error of a transaction that cannot write. It shows in the claim
// or before; what comes later is about another database.
func wrapReadOnly(err error) error {
	var writing *writeError
	var hook *hookError
	if pgtx.Code(err) == pgtx.CodeReadOnly && !errors.As(err, &writing) && !errors.As(err, &hook) {
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
// would end a service because of one job. The value of the
// panic, if it is an error, is found by errors.Is.
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

// faultOf says what an error means for the database. A source may use another one.
func faultOf(err error) loop.Fault {
	var source *sourceError
	switch {
	case errors.Is(err, errTooLong):
		return loop.TimedOut
	case isUnreachable(err):
		return loop.Outage
	case errors.As(err, &source):
		return loop.Other
	}
	fault := loop.FaultOf(err)
	if fault == loop.Outage && noWorkerMeets(err) {
		return loop.Other
	}
	return fault
}

// noWorkerMeets reports whether an error came from what workers have nothing to do with:
// another database, or a lock on the settings, the dead letters or a table of a hook. A
// transaction that could claim is not read-only itself.
func noWorkerMeets(err error) bool {
	var mover *moverError
	var claiming *claimError
	var blocked *blockedError
	var writing *writeError
	var hook *hookError
	switch {
	case errors.As(err, &mover):
		return true
	case pgtx.Code(err) == pgtx.CodeLockNotAvailable:
		return errors.As(err, &claiming) && claiming.atGates || errors.As(err, &blocked) || errors.As(err, &hook)
	case pgtx.Code(err) == pgtx.CodeReadOnly:
		return errors.As(err, &writing) || errors.As(err, &blocked)
	}
	return false
}

// isUnreachable tells an error of the connection from one of the caller's code or the
// server's.
func isUnreachable(err error) bool {
	var hook *hookError
	var mover *moverError
	var blocked *blockedError
	var source *sourceError
	if errors.As(err, &mover) || errors.As(err, &blocked) { // its SQLSTATE may be another server's
		return false
	}
	if pgtx.Code(err) == "" && (errors.As(err, &hook) || errors.As(err, &source) || errors.Is(err, errTooLong)) {
		return false
	}
	return errors.Is(err, ErrOutcomeUnknown) || pgtx.IsUnreachable(err)
}
