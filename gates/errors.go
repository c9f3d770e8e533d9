package gates

import (
	"errors"
	"fmt"
)

var (
	// ErrKey is wrapped by the error for a key that is not one of [Keys].
	ErrKey = errors.New("gates: unknown key")

	// ErrActor is wrapped by the error for an actor that is empty, has a NUL or is
	// not UTF-8.
	ErrActor = errors.New("gates: invalid actor")

	// ErrDuration is wrapped by the error for a window that is shorter than a
	// microsecond or longer than [MaxWindow].
	ErrDuration = errors.New("gates: a window's duration must be a microsecond to 30 days")

	// ErrColumn is wrapped, with the server's error, by the error for a setting that
	// does not fit the type of the column value, such as a window's end in a boolean
	// column.
	ErrColumn = errors.New("gates: the setting does not fit the type of the column value")
)

// ValueError reports an invalid value of a setting. Such a value never opens a gate.
// Test for it with [errors.As].
type ValueError struct {
	Key   string
	Value string
	fault string
}

// maxShown bounds how much of a value the message repeats.
const maxShown = 100

// Error returns the key, the value and the fault.
func (e *ValueError) Error() string {
	value := e.Value
	if len(value) > maxShown {
		value = value[:maxShown] + "..."
	}
	return fmt.Sprintf("gates: %s: %q %s", e.Key, value, e.fault)
}
