package gates

import (
	"errors"
	"fmt"
)

var (
	// ErrKey is wrapped by the error for a key that no apply depends on.
	ErrKey = errors.New("gates: unknown key")

	// ErrActor is wrapped by the error for an actor that is empty, or that
	// PostgreSQL cannot store as text: one with a NUL, or that is not UTF-8.
	ErrActor = errors.New("gates: invalid actor")

	// ErrDuration is wrapped by the error for a window that is shorter than a
	// microsecond or longer than [MaxWindow].
	ErrDuration = errors.New("gates: a window takes a microsecond to 30 days")

	// ErrColumn is wrapped, together with the server's error, by the error for a
	// value that the type of the column value does not take: a window's end in a
	// boolean column, say.
	ErrColumn = errors.New("gates: the column value does not take this value")
)

// ValueError reports a setting that does not mean what its key needs. It never
// opens a gate. Test for it with [errors.As].
type ValueError struct {
	Key   string
	Value string
	fault string
}

// maxShown bounds how much of a value the message repeats.
const maxShown = 100

// Error names the key, the value and what is wrong with it.
func (e *ValueError) Error() string {
	value := e.Value
	if len(value) > maxShown {
		value = value[:maxShown] + "..."
	}
	return fmt.Sprintf("gates: %s: %q %s", e.Key, value, e.fault)
}
