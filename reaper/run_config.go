package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// RunConfig says how a loop runs. Its zero value works.
type RunConfig struct {
	// Batch is the limit of each apply. Too low, and a backlog takes many round
	// trips; too high, and a transaction holds its row locks for long. An apply
	// that a time-out ends is made again with half of it; see [Reaper.Run].
	// Default 1000.
	Batch int

	// Interval is the longest sleep between two polls. If it is longer than the
	// leases, a lease that begins and expires between two polls is found late; if it
	// is very short, an idle database is polled often. It is also the first wait of a
	// rejected job. Default 30 s.
	Interval time.Duration

	// MinInterval is the shortest sleep, however soon the next lease expires. A
	// job whose lease the last poll has seen is reaped at most about this long after
	// the lease's end. Too high delays; too low makes a poll for nearly every lease
	// that expires. Default 1 s, or Interval when that is shorter.
	MinInterval time.Duration

	// Settle is how long to wait before reaping after an outage, a restart or a
	// failover: no worker could renew its lease meanwhile, and the jobs of living
	// workers would be reaped while they run. At the start of a loop, a server that
	// was started less than this ago is given the rest of it. It should exceed the
	// time in which workers renew. Too high only delays. Default 30 s; a nanosecond
	// is as good as none.
	Settle time.Duration

	// OnPass is called after each apply, after each poll that found nothing new,
	// and after each error, for metrics. While the loop waits for Settle, it is not.
	// Failures of its Result hold PostgreSQL's message for each rejected job, which
	// the log may leave out. It delays the loop. A panic in it is logged. Default
	// nil.
	OnPass func(ctx context.Context, pass Pass)
}

// Pass is what one pass of a loop came to.
type Pass struct {
	Result *ApplyResult  // nil after an error; empty after a poll that found nothing new
	Err    error         // errors are retried, whatever they are
	Took   time.Duration // by the process's clock
}

// Defaults of RunConfig.
const (
	defaultBatch       = 1000
	defaultInterval    = 30 * time.Second
	defaultMinInterval = time.Second
	defaultSettle      = 30 * time.Second
)

func (c RunConfig) withDefaults() RunConfig {
	c.Batch = cmp.Or(c.Batch, defaultBatch)
	c.Interval = cmp.Or(c.Interval, defaultInterval)
	c.MinInterval = cmp.Or(c.MinInterval, min(defaultMinInterval, c.Interval))
	c.Settle = cmp.Or(c.Settle, defaultSettle)
	return c
}

func (c RunConfig) validate() error {
	var faults []error
	if c.Batch < 0 {
		faults = append(faults, fmt.Errorf("%w: Batch %d", ErrNegative, c.Batch))
	}
	for _, wait := range []struct {
		name string
		time.Duration
	}{{"Interval", c.Interval}, {"MinInterval", c.MinInterval}, {"Settle", c.Settle}} {
		if wait.Duration < 0 {
			faults = append(faults, fmt.Errorf("%w: %s %v", ErrNegative, wait.name, wait.Duration))
		}
	}
	if c.MinInterval > c.Interval {
		faults = append(faults, fmt.Errorf("%w: %v and %v", ErrInvalidIntervals, c.MinInterval, c.Interval))
	}
	return errors.Join(faults...)
}
