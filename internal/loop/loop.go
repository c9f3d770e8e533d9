// Package loop decides when a reaper polls, when it reaps and when it sleeps.
//
// Each step polls first, with one query, and reaps only when something is stale.
// Then it sleeps until the next lease expires, within bounds. After an outage it
// settles: workers get time to renew their leases before any is reaped. It reads
// no clock but the process's own, for waiting alone.
package loop

import (
	"context"
	"math/rand/v2"
	"time"
)

// Work is what a loop drives.
type Work interface {
	// Poll reports what there is to do: all of it, or only what is behind the
	// cursor up to which everything was seen already.
	Poll(ctx context.Context, all bool) (Sight, error)

	// Reap does it, at most batch jobs in a transaction, and reports whether it
	// was refused.
	Reap(ctx context.Context, batch int) (refused bool, err error)

	// TryWrite writes to the queue as a worker does, and undoes it.
	TryWrite(ctx context.Context) error

	// Settling is told how long the loop waits for the workers.
	Settling(ctx context.Context, wait time.Duration)

	// Fault tells what an error, or nil, says of the database.
	Fault(err error) Fault
}

// Sight is what a poll shows.
type Sight struct {
	Stale   bool           // there is something to reap
	Due     *time.Duration // until the next lease is stale; nil: none in sight
	Server  Server
	Uptime  time.Duration // since the server was started
	Elapsed time.Duration // how long the query took; also set with an error
}

// Config bounds a loop. All of it is positive.
type Config struct {
	Batch       int           // the most that a transaction reaps
	Interval    time.Duration // the longest sleep
	MinInterval time.Duration // the shortest
	Settle      time.Duration // how long workers get after an outage
}

// Run steps until ctx ends, and returns its cause.
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
	batch    int  // of the next apply
	outage   bool // one was seen since the last settling
	blocked  bool // an apply failed in an outage, and no write has worked since
	failures int  // in a row
}

// step polls, reaps if there is reason to, and returns how long to sleep.
func (l *loop) step(ctx context.Context) time.Duration {
	if l.blocked && !l.writes(ctx) {
		return l.retry()
	}
	began := time.Now()
	all := l.scan.full(began)
	sight, err := l.work.Poll(ctx, all)
	if err != nil {
		l.outage = l.outage || l.work.Fault(err) != Other
		return max(l.retry(), min((fullPollFactor-1)*sight.Elapsed, fullPollEvery))
	}
	if wait := l.settle(sight); wait > 0 {
		l.work.Settling(ctx, wait)
		return wait
	}
	if all {
		l.scan.begun(began, sight.Elapsed, l.cfg.Interval)
	}
	if sight.Stale {
		if wait, ok := l.reap(ctx); !ok {
			return max(wait, l.scan.rest(time.Now()))
		}
	}
	l.failures = 0
	l.scan.done = true
	return l.next(sight, time.Since(began))
}

// settle returns how long to wait before reaping. A server that was started
// lately, or is another than before, may have been away from the workers too.
func (l *loop) settle(sight Sight) time.Duration {
	first := l.servers.none()
	again := l.servers.meet(sight.Server)
	switch {
	case l.outage || again:
		l.outage = false
		return l.cfg.Settle
	case first:
		return l.cfg.Settle - max(sight.Uptime, 0) // a clock that was set back makes it negative
	}
	return 0
}

// reap reports whether everything was reaped, and else how long to wait.
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

// failed returns the wait after an apply that failed. One that took too long is
// made again soon as long as its batch can be smaller.
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

// writes reports whether a worker could renew. A write that the server took, and
// then rejected for a reason of the row's, is one that a worker could make.
func (l *loop) writes(ctx context.Context) bool {
	l.blocked = l.work.Fault(l.work.TryWrite(ctx)) != Other
	return !l.blocked
}

// retry returns the wait after an error, which doubles with each.
func (l *loop) retry() time.Duration {
	wait := l.cfg.Interval
	if shifted := l.cfg.MinInterval << l.failures; shifted > 0 && shifted < wait {
		wait = shifted
		l.failures++
	}
	return wait - jitter(wait)
}

// next returns the wait until the next lease is stale, within the bounds.
func (l *loop) next(sight Sight, elapsed time.Duration) time.Duration {
	if sight.Due == nil {
		return l.idle()
	}
	wait := *sight.Due - elapsed + jitter(l.cfg.MinInterval)
	return max(min(wait, l.idle()), l.cfg.MinInterval)
}

// idle returns the wait when there is nothing to wait for.
func (l *loop) idle() time.Duration { return l.cfg.Interval - jitter(l.cfg.Interval) }

// jitterDivisor makes a tenth of a wait random, so that replicas which were started
// together do not stay together.
const jitterDivisor = 10

// jitter returns a random part of a wait.
func jitter(wait time.Duration) time.Duration { return rand.N(wait/jitterDivisor + 1) }
