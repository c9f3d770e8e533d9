package work

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/lease-governance/leasereaper/examples/worker/queue"
)

// Handler does one job. When ctx ends it should return soon, with whatever error:
// its cause says whether the lease was lost ([queue.ErrLost], [ErrNotRenewed]) or
// the worker is being stopped ([ErrStopped]), and neither counts as a try that
// failed. Any other error does, and so does a panic.
//
// A job may be done more than once, when a worker dies after doing it and before
// saying so. Effects that must happen once belong into Done.
type Handler func(ctx context.Context, job queue.Job) (Done, error)

// Done is what a handler leaves for the job's completion. Its zero value is
// nothing.
type Done struct {
	// Effects are called in the transaction that completes the job, and have ten
	// seconds for it. An error in them is the job's.
	Effects queue.Effects

	// Committed is called when that transaction has committed.
	Committed func()
}

// panicError is a panic of a handler's.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guarded makes an error of a panic, which would end the jobs of everybody else.
func guarded(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
		}
	}()
	return do()
}
