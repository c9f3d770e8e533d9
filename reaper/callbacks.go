package reaper

import "fmt"

// guarded calls code of the caller's. A panic in it becomes an error, since it
// would end a service because of one job. An error that was panicked with can be
// told by errors.Is.
func guarded(what string, call func() error) (err error) {
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
