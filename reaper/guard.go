package reaper

import "fmt"

// guarded calls code of the caller's. A panic in it becomes an error, since it
// would end a service for one job's sake. An error that was panicked with can be
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
