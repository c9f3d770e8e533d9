package gates

import "fmt"

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
