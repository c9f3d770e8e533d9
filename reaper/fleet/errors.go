package fleet

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNoMembers is wrapped by New's error when Config.Members is nil.
	ErrNoMembers = errors.New("fleet: Members is nil")

	// ErrNegative is wrapped by New's error for each setting that is negative.
	ErrNegative = errors.New("fleet: negative setting")

	// ErrDuplicateMember is wrapped by the error for each name that a list of members has
	// more than once.
	ErrDuplicateMember = errors.New("fleet: duplicate member")

	// ErrMemberName is the error of a member without a name.
	ErrMemberName = errors.New("fleet: the member has no name")

	// ErrGateSource is wrapped by the error of [Fleet.CloseGates] for a member whose source
	// of gates is not a [gates.Table].
	ErrGateSource = errors.New("fleet: the source of gates is no gates.Table")
)

// NotClosedError is the error of [Fleet.CloseGates] when it did not close the gates of all
// members.
type NotClosedError struct {
	Members []string // whose gate may still be open, in their order
}

func (e *NotClosedError) Error() string {
	names := make([]string, len(e.Members))
	for i, name := range e.Members {
		names[i] = fmt.Sprintf("%q", name)
	}
	return "fleet: the gates of these members were not closed: " + strings.Join(names, ", ")
}

// recoverPanic calls code of the caller's. A panic in it becomes an error, which wraps the
// panic's value if that is an error.
func recoverPanic(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = newPanicError(p)
		}
	}()
	return call()
}

// panicError is the value of a panic.
type panicError struct{ cause error }

func newPanicError(value any) *panicError {
	cause, ok := value.(error)
	if !ok {
		cause = fmt.Errorf("%v", value)
	}
	return &panicError{cause}
}

func (e *panicError) Error() string { return fmt.Sprintf("panicked: %v", e.cause) }
func (e *panicError) Unwrap() error { return e.cause }
