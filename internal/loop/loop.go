// Package loop decides when a reaper passes and when it sleeps.
//
// Each step looks first, in one query, and reaps only when something is stale.
// Then it sleeps until the next lease is due, within bounds. After the database
// was out of reach or began anew, it settles: workers get time to renew their
// leases before any is reaped. It reads no clock but the process's own, for
// waiting alone.
package loop

import (
	"context"
	"math/rand/v2"
	"time"
)

// fullLook is how long a loop goes on looking only behind what it saw before it
// looks at everything again, unless the interval is shorter. So a stale lease
// that was passed by is missed for this and one sleep at most.
const fullLook = 30 * time.Second

// spread is the part of a wait that is left to chance, so that replicas which
// were started together do not stay together.
const spread = 10

// Work is what a loop drives.
type Work interface {
	// Look reports what there is to do: all of it, or only what is behind the
	// place up to which everything was seen already.
	Look(ctx context.Context, all bool) (Sight, error)
	// Reap does it, and reports whether it was refused.
	Reap(ctx context.Context) (refused bool, err error)
	// Settling is told how long the loop waits for the workers.
	Settling(ctx context.Context, wait time.Duration)
	// Unreachable tells an error of the connection from others.
	Unreachable(err error) bool
}

// Sight is what a look shows.
type Sight struct {
	Stale  bool           // there is something to reap
	Due    *time.Duration // until the next lease is stale; nil: none in sight
	Server time.Time      // when the server started: another time is another start
	Uptime time.Duration
}

// Config bounds a loop. All of it is positive.
type Config struct {
	Interval    time.Duration // the longest sleep
	MinInterval time.Duration // the shortest
	Settle      time.Duration // how long workers get after an outage
}

// Run steps until ctx ends, and returns its cause.
func Run(ctx context.Context, work Work, cfg Config) error {
	l := &loop{Config: cfg, work: work}
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
	Config
	work     Work
	server   time.Time // when the server started that was seen last
	outage   bool      // it was out of reach since the last settling
	failures int       // in a row
	lookedAt time.Time // when everything was looked at
}

// step looks, reaps if there is reason to, and returns how long to sleep.
func (l *loop) step(ctx context.Context) time.Duration {
	began := time.Now()
	all := l.lookedAt.IsZero() || began.Sub(l.lookedAt) >= min(fullLook, l.Interval)
	sight, err := l.work.Look(ctx, all)
	if err != nil {
		return l.failed(err)
	}
	if wait := l.settle(sight); wait > 0 {
		l.work.Settling(ctx, wait)
		return wait
	}
	if sight.Stale {
		refused, err := l.work.Reap(ctx)
		switch {
		case err != nil:
			return l.failed(err)
		case refused:
			l.failures = 0
			return l.rest()
		}
	}
	l.failures = 0
	if all {
		l.lookedAt = began
	}
	return l.next(sight, time.Since(began))
}

// settle returns how long to wait before reaping. A server that started lately,
// or is not the one that was seen last, may have been away from the workers too.
func (l *loop) settle(sight Sight) time.Duration {
	first := l.server.IsZero()
	again := !first && !sight.Server.Equal(l.server)
	l.server = sight.Server
	if l.outage || again {
		l.outage = false
		return l.Settle
	}
	if first {
		return l.Settle - max(sight.Uptime, 0) // a clock that was set back makes it negative
	}
	return 0
}

// failed returns the wait after an error, which doubles with each.
func (l *loop) failed(err error) time.Duration {
	l.outage = l.outage || l.work.Unreachable(err)
	wait := l.Interval
	if shifted := l.MinInterval << l.failures; shifted > 0 && shifted < wait {
		wait = shifted
		l.failures++
	}
	return wait - chance(wait)
}

// next returns the wait until the next lease is due, within the bounds.
func (l *loop) next(sight Sight, elapsed time.Duration) time.Duration {
	if sight.Due == nil {
		return l.rest()
	}
	wait := *sight.Due - elapsed + chance(l.MinInterval)
	return max(min(wait, l.rest()), l.MinInterval)
}

func (l *loop) rest() time.Duration { return l.Interval - chance(l.Interval) }

// chance returns a random part of a wait.
func chance(wait time.Duration) time.Duration { return rand.N(wait/spread + 1) }
