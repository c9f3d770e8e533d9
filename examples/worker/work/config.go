package work

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lease-governance/leasereaper/examples/worker/queue"
)

var (
	// ErrNegative is wrapped by New's error for each setting that is negative.
	ErrNegative = errors.New("work: negative setting")

	// ErrNoHandlers is wrapped by New's error for a worker that can do nothing.
	ErrNoHandlers = errors.New("work: no handlers")

	// ErrStopped is the cause that ends a job's context when the worker is being
	// stopped and its grace is over.
	ErrStopped = errors.New("work: the worker is being stopped")

	// ErrNotRenewed is the cause that ends a job's context when its lease ran out,
	// by this process's clock, because no renewal came through.
	ErrNotRenewed = errors.New("work: the lease ran out and could not be renewed")

	// ErrAbandoned is wrapped by Run's error when handlers did not heed the end of
	// their contexts. Their leases run out, and a reaper gives the jobs back.
	ErrAbandoned = errors.New("work: jobs were abandoned")
)

// Config says how a worker works.
type Config struct {
	// Handlers by kind. Jobs of other kinds are left to other workers.
	Handlers map[string]Handler

	// Slots is how many jobs run at once. Too low, and the queue grows; too high,
	// and each job takes longer, its lease with it. Each takes a connection of the
	// pool now and then. Default 4.
	Slots int

	// Poll is how long to wait, less up to a tenth, when there was nothing more to
	// claim. Too short is a load on the database, too long a delay for each job of
	// a quiet queue. Default 1 s.
	Poll time.Duration

	// Grace is how long running jobs may go on when the worker is being stopped.
	// Whoever stops it must wait for ten seconds longer. Too short, and long jobs
	// begin again elsewhere. Default 20 s; a nanosecond is as good as none.
	Grace time.Duration

	// Patience is how long handlers have to return when the grace is over. Default
	// 5 s.
	Patience time.Duration

	// OnEnd is called when a job has ended, for metrics. Default nil.
	OnEnd func(End)

	// Logger gets a Debug record for each job that succeeded, and Info or Warn for
	// each that ended otherwise. Default nil: nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Slots = cmp.Or(c.Slots, 4)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.Grace = cmp.Or(c.Grace, 20*time.Second)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
	if c.OnEnd == nil {
		c.OnEnd = func(End) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	var faults []error
	if len(c.Handlers) == 0 {
		faults = append(faults, ErrNoHandlers)
	}
	if c.Slots < 0 {
		faults = append(faults, fmt.Errorf("%w: Slots %d", ErrNegative, c.Slots))
	}
	for _, wait := range []struct {
		name string
		time.Duration
	}{{"Poll", c.Poll}, {"Grace", c.Grace}, {"Patience", c.Patience}} {
		if wait.Duration < 0 {
			faults = append(faults, fmt.Errorf("%w: %s %v", ErrNegative, wait.name, wait.Duration))
		}
	}
	return errors.Join(faults...)
}

// Outcome is how a job's lease ended.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = "succeeded"
	Retried   Outcome = "retried"    // it failed and waits for its next try
	Buried    Outcome = "buried"     // it failed for the last time: a dead letter
	GivenBack Outcome = "given_back" // the worker was stopped, no try was counted
	Lost      Outcome = "lost"       // it was another's by the end, nothing was changed
	Unknown   Outcome = "unknown"    // the database could not be told; if need be, the lease runs out
)

// Outcomes lists them all.
func Outcomes() []Outcome {
	return []Outcome{Succeeded, Retried, Buried, GivenBack, Lost, Unknown}
}

// End is the end of a lease.
type End struct {
	Job     queue.Job
	Outcome Outcome
	Err     error         // why, unless it succeeded
	Took    time.Duration // since the handler was called
}
