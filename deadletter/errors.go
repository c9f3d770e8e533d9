package deadletter

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

var (
	// ErrNilDB is the error of a call whose DB is nil, or holds a nil pointer.
	ErrNilDB = errors.New("deadletter: db is nil")

	// ErrLimit is wrapped by the error for a limit below 1.
	ErrLimit = errors.New("deadletter: limit is below 1")

	// ErrNegative is wrapped by the error for each age or setting that is negative.
	ErrNegative = errors.New("deadletter: negative setting")

	// ErrActor is wrapped by the error for an actor that is empty or only white
	// space, or that PostgreSQL cannot store as text.
	ErrActor = errors.New("deadletter: invalid actor")

	// ErrFilter is wrapped by the error for a filter that no letter can meet: an
	// unknown status, an After that is no Next, a text with a NUL.
	ErrFilter = errors.New("deadletter: invalid filter")

	// ErrID is wrapped by the error for an id, or one in After, that is not of the
	// key's type. The error wraps PostgreSQL's, too, which says which one.
	ErrID = errors.New("deadletter: id is not of the key's type")

	// ErrQueue is wrapped by the error for each name of a Queue that is missing, that
	// nothing can have, or that stands for two things.
	ErrQueue = errors.New("deadletter: invalid queue")

	// ErrReadOnly is wrapped by the error of a redrive or a purge on a hot
	// standby, or on a connection whose transactions are read-only.
	ErrReadOnly = errors.New("deadletter: the transaction is read-only")

	// ErrOutcomeUnknown is wrapped by the error of a redrive or a purge whose
	// connection broke, or whose context ended, during COMMIT: the transaction
	// happened whole or not at all. Calling again is safe either way.
	ErrOutcomeUnknown = errors.New("deadletter: connection broke during commit, outcome unknown")
)

// checkDB also sees the nil pointer inside an interface, which a pool that was
// never opened is.
func checkDB(db DB) error {
	if v := reflect.ValueOf(db); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return ErrNilDB
	}
	return nil
}

func checkLimit(limit int) error {
	if limit < 1 {
		return fmt.Errorf("%w: %d", ErrLimit, limit)
	}
	return nil
}

func checkAge(what string, age time.Duration) error {
	if age < 0 {
		return fmt.Errorf("%w: %s %v", ErrNegative, what, age)
	}
	return nil
}

func checkActor(actor string) error {
	if strings.TrimSpace(actor) == "" || !isText(actor) {
		return fmt.Errorf("%w: %q", ErrActor, actor)
	}
	return nil
}

// isText reports whether PostgreSQL can store a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// wrap says what failed, and marks the errors that have a sentinel. No error stays none.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	if pgtx.Code(err) == pgtx.CodeReadOnly {
		return fmt.Errorf("%w: %s: %w", ErrReadOnly, what, err)
	}
	return fmt.Errorf("deadletter: %s: %w", what, err)
}

// wrap is for the statement that f's conditions are in, where the server may find
// that it cannot make a key, or a time, of a text.
func (f Filter) wrap(what string, err error) error {
	if f.IDs == nil && f.JobIDs == nil && f.After == "" {
		return wrap(what, err)
	}
	switch code := pgtx.Code(err); {
	case code == "22007", code == "22008", code == "22009": // of times
		return fmt.Errorf("%w: After: %s: %w", ErrFilter, what, err)
	case pgtx.Class(code) == "22", code == pgtx.CodeCheckViolation: // of texts, and a domain's check
		return fmt.Errorf("%w: %s: %w", ErrID, what, err)
	}
	return wrap(what, err)
}
