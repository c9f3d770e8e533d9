// Package loop decides when a reaper polls, reaps and sleeps.
//
// Each step polls with one query and reaps only when a lease is stale. Then it sleeps
// until the next lease expires, within bounds. After an outage it waits, so that workers
// can renew their leases before any is reaped. The loop measures waits with the process's
// clock and uses it for nothing else.
package loop

import (
	"context"
	"math/rand/v2"
	"time"
)

// Work has the steps that a loop runs.
type Work interface {
	// Poll looks for stale leases: for all of them, or only after the cursor, up to
	// which earlier polls have looked.
	Poll(ctx context.Context, all bool) (PollResult, error)

	// Reap resets or moves the stale jobs, at most batch in a transaction, and reports
	// whether an apply was refused.
	Reap(ctx context.Context, batch int) (refused bool, err error)

	// TryWrite writes to the queue as a worker does, and rolls that back.
	TryWrite(ctx context.Context) error

	// Settling is called before the loop waits for the workers to renew their leases.
	Settling(ctx context.Context, wait time.Duration)

	// Fault classifies an error, or nil.
	Fault(err error) Fault
}

// PollResult is the result of a poll.
type PollResult struct {
	Stale      bool           // some lease is stale
	NextExpiry *time.Duration // until the next lease is stale; nil: no such lease is known
	Server     Server
	Uptime     time.Duration // since the server was started
	Elapsed    time.Duration // the time that the query took; also set with an error
}

// Config bounds a loop. All values are positive.
type Config struct {
	Batch       int           // the most jobs that a transaction reaps
	Interval    time.Duration // the longest sleep
	MinInterval time.Duration // the shortest sleep
	Settle      time.Duration // the time that workers get after an outage to renew leases
}

// Run runs steps until ctx ends, and returns the cause of that.
func Run(ctx context.Context, work Work, cfg Config) error {
	l := &loop{cfg: cfg, work: work, batch: cfg.Batch}
	for ctx.Err() == nil {
		wake := time.NewTimer(l.step(ctx))
		select {
		case <-wake.C:
		case <-ctx.Done():
			wake.Stop()
		}
	}
	return context.Cause(ctx)
}

type loop struct {
	cfg      Config
	work     Work
	servers  servers
	scan     scan
	batch    int  // the batch of the next apply
	outage   bool // there was an outage since the last wait for workers
	blocked  bool // an apply failed in an outage, and no write has succeeded since
	failures int  // the number of consecutive failures
}

// step polls, reaps if there is reason to, and returns how long to sleep.
func (l *loop) step(ctx context.Context) time.Duration {
	if l.blocked && !l.writes(ctx) {
		return l.retry()
	}
	began := time.Now()
	all := l.scan.full(began)
	result, err := l.work.Poll(ctx, all)
	if err != nil {
		l.outage = l.outage || l.work.Fault(err) != Other
		return max(l.retry(), min((fullPollFactor-1)*result.Elapsed, fullPollEvery))
	}
	if wait := l.settle(result); wait > 0 {
		l.work.Settling(ctx, wait)
		return wait
	}
	if all {
		l.scan.begun(began, result.Elapsed, l.cfg.Interval)
	}
	if result.Stale {
		if wait, ok := l.reap(ctx); !ok {
			return max(wait, l.scan.untilAllowed(time.Now()))
		}
	}
	l.failures = 0
	l.scan.done = true
	return l.next(result, time.Since(began))
}

// settle returns how long to wait before reaping. If the server was started recently, or
// is not the previous one, workers may have been unable to renew their leases.
func (l *loop) settle(result PollResult) time.Duration {
	first := l.servers.none()
	again := l.servers.meet(result.Server)
	switch {
	case l.outage || again:
		l.outage = false
		return l.cfg.Settle
	case first:
		return l.cfg.Settle - max(result.Uptime, 0) // it is negative after a clock was set back
	}
	return 0
}

// reap reaps the stale jobs. ok is false after an error or a refusal, and wait is how long
// to wait then.
func (l *loop) reap(ctx context.Context) (wait time.Duration, ok bool) {
	refused, err := l.work.Reap(ctx, l.batch)
	switch {
	case err != nil:
		return l.failed(l.work.Fault(err)), false
	case refused:
		l.failures = 0
		return l.idle(), false
	}
	l.batch = min(2*l.batch, l.cfg.Batch)
	return 0, true
}

// failed returns the wait after an apply that failed. After a time-out the batch is
// halved and the next apply comes soon, until the batch is 1.
func (l *loop) failed(fault Fault) time.Duration {
	switch fault {
	case TimedOut:
		if l.batch > 1 {
			l.batch /= 2
			return l.cfg.MinInterval
		}
	case Outage:
		l.outage, l.blocked = true, true
	case Other:
	}
	return l.retry()
}

// writes reports whether a worker could renew a lease. An error that concerns only a row
// does not count: a worker could write other rows.
func (l *loop) writes(ctx context.Context) bool {
	l.blocked = l.work.Fault(l.work.TryWrite(ctx)) != Other
	return !l.blocked
}

// retry returns the wait after an error. It doubles with each consecutive error.
func (l *loop) retry() time.Duration {
	wait := l.cfg.Interval
	if shifted := l.cfg.MinInterval << l.failures; shifted > 0 && shifted < wait {
		wait = shifted
		l.failures++
	}
	return wait - jitter(wait)
}

// next returns the wait until the next lease is stale, within the bounds.
func (l *loop) next(result PollResult, elapsed time.Duration) time.Duration {
	if result.NextExpiry == nil {
		return l.idle()
	}
	wait := *result.NextExpiry - elapsed + jitter(l.cfg.MinInterval)
	return max(min(wait, l.idle()), l.cfg.MinInterval)
}

// idle returns the wait when no expiry is known.
func (l *loop) idle() time.Duration { return l.cfg.Interval - jitter(l.cfg.Interval) }

// jitterDivisor makes a tenth of a wait random, so that replicas that were started
// together do not poll together.
const jitterDivisor = 10

// jitter returns a random part of a wait.
func jitter(wait time.Duration) time.Duration { return rand.N(wait/jitterDivisor + 1) }
