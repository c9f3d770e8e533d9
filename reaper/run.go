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
	// trips; too high, and a transaction holds its row locks for long. An apply
	// that a time-out ends is made again with half of it; see [Reaper.Run].
	// Default 1000.
	Batch int

	// Interval is the longest sleep between two polls. Longer than the leases, and
	// one that begins and ends between two polls waits until the next; very short,
	// and an idle database is asked often. It is also the first wait of a rejected
	// job. Default 30 s.
	Interval time.Duration

	// MinInterval is the shortest sleep, however soon the next lease expires. A
	// job whose lease the last poll has seen is reaped about this long after its
	// end at most, so too high is slow; too low is a poll for nearly every lease
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
	// and after each error, for metrics; it is not while the loop waits for Settle.
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
		faults = append(faults, fmt.Errorf("%w: %v and %v", ErrIntervals, c.MinInterval, c.Interval))
	}
	return errors.Join(faults...)
}

// Run reaps until ctx ends, and returns its cause. It applies at once, batch after
// batch while leases are stale, and then sleeps until the next lease expires: with
// an Interval no longer than the leases, each expiry is foreseen, and a job is
// reaped about one MinInterval after it. An idle Run costs one poll an Interval,
// and notices within one that a gate was opened. It starts no goroutine.
//
// Any number of replicas may run it on the same queue, and none is a leader.
// Nothing but ctx ends it: an error, a closed gate and an outage are logged once
// when they begin and once when they end, and tried again, with growing waits after
// errors. Whether a lease is stale is decided by the database's clock alone.
//
// An outage is whatever keeps workers from renewing, as far as the loop meets it: a
// connection that breaks or cannot be made, a read-only database, no disk or memory,
// an I/O error, a poll that waits for a lock for longer than [Config.LockTimeout],
// or for longer than 15 seconds or the server's statement_timeout at all, an apply
// that fails, or whose jobs all fail, for one of these reasons. A lock that only rows
// wait for is none. An outage is over when polls
// work again; after an apply that failed in one, not before the loop has also written
// to a leased row, which it rolls back. Then it waits for Settle, as it does when a
// server answers that has not answered before, or that was a standby. Servers that
// answer in turn are not taken for a restart.
//
// An apply that the server's statement_timeout ends, or that takes longer than 5
// minutes, is no outage: the loop tries again with half the batch, and doubles it
// after each success.
//
// A rejected job is tried again after an Interval, then after waits that double up
// to ten minutes; the loop remembers 10,000 such jobs, and tries those beyond at each
// full poll. A row that was locked, and a lease whose end was moved into the past,
// is met at the next full poll: each Interval, or each half minute if that is
// shorter, but less often where such polls would take more than a tenth of the time.
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
