package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lease-governance/leasereaper/internal/loop"
)

// RunConfig says how a loop runs. Its zero value works.
type RunConfig struct {
	// Batch is the limit of each apply. Too low, and a backlog takes many round
	// trips; too high, and a transaction holds its row locks for long. Default
	// 1000.
	Batch int

	// Interval is the longest sleep between two looks. A lease that is shorter
	// than it may end unforeseen and wait that long; a very short one asks an
	// idle database often. Default 30 s.
	Interval time.Duration

	// MinInterval is the shortest sleep, however soon the next lease is due. A
	// job whose lease the last look could foresee is given back at most this
	// long after its end, so too high is slow; too low is a query for nearly every lease that ends. Default 1 s, or
	// Interval when that is shorter.
	MinInterval time.Duration

	// Settle is how long to wait before reaping when the database was out of
	// reach or was started anew: no worker could renew its lease meanwhile, and
	// reaping at once would give every running job away twice. At the start of a
	// loop, a server that is younger than this is given the rest of it. It
	// should exceed the time in which workers renew. Too high only delays.
	// Default 30 s; a nanosecond is as good as none.
	Settle time.Duration

	// OnPass is called after each apply, after each look that found nothing new,
	// and after each error, for metrics; it is not while the loop settles. Its
	// Failures hold PostgreSQL's message for each job that was turned away,
	// which the log may leave out. It delays the loop. A panic in it is logged.
	// Default nil.
	OnPass func(ctx context.Context, pass Pass)
}

// Pass is what one pass of a loop came to.
type Pass struct {
	Result *ApplyResult  // nil after an error; empty after a look that found nothing new
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
		faults = append(faults, fmt.Errorf("%w: %v and %v", ErrIntervals, c.MinInterval, c.Interval))
	}
	return errors.Join(faults...)
}

// Run reaps until ctx ends, and returns its cause. It passes at once, drains
// while there is work, and then sleeps until the next lease is due: with an
// Interval no longer than the leases, every expiry is foreseen, and a job is
// given back within one MinInterval of it. An idle Run costs one query an
// Interval, and notices within one that a gate was opened. It starts no
// goroutine.
//
// Any number of replicas may run it on the same queue, and none is a leader.
// Nothing but ctx ends it: an error, a closed gate and a database out of reach
// are logged once when they begin and once when they end, and tried again, with
// growing waits after errors. Whether a lease is due is decided by the
// database's clock alone.
//
// What a pass could not settle, because a row was locked or turned away, and a
// lease that was moved into the past by hand, is met within two Intervals, or
// an Interval and half a minute if that is shorter. A look that takes longer
// than 15 seconds, or an apply longer than 5 minutes, is given up as if the
// database were out of reach.
//
// Run returns at once, with every fault, when cfg has a negative setting
// ([ErrNegative]) or intervals that contradict each other ([ErrIntervals]), when
// the actor is empty or not text ([ErrActor]), or when the Reaper's DB is a
// transaction ([ErrInTransaction]), whose now() stands still. With a single
// connection as DB it cannot connect again; use a pool.
func (r *Reaper) Run(ctx context.Context, actor string, cfg RunConfig) error {
	cfg = cfg.withDefaults()
	faults := []error{cfg.validate(), checkActor(actor)}
	if strings.TrimSpace(actor) == "" {
		faults = append(faults, fmt.Errorf("%w: it is empty", ErrActor))
	}
	if r.nested {
		faults = append(faults, ErrInTransaction)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return loop.Run(ctx, newRunner(r, actor, cfg), loop.Config{
		Batch:       cfg.Batch,
		Interval:    cfg.Interval,
		MinInterval: cfg.MinInterval,
		Settle:      cfg.Settle,
	})
}
