// Package soak runs two queues next to each other for up to an hour: workers that live, die
// and return, loops of the library, and a transaction that is open for the middle third.
// Each queue has a PostgreSQL of its own, so that the WAL of each is known, and both have
// the same load. The load is the same on each machine that can carry it.
package soak

import (
	"context"
	"errors"
	"time"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// samples is how often a queue is looked at, if that is more often than each minute.
const samples = 60

// Config says how long a soak lasts.
type Config struct {
	Length time.Duration
	// Small has servers with little memory and without fsync. The figures mean nothing.
	Small bool
}

// interval is the time between two samples.
func (c Config) interval() time.Duration { return min(time.Minute, c.Length/samples) }

// count is the number of samples, a multiple of three.
func (c Config) count() int { return int(c.Length/c.interval()) / 3 * 3 }

// Result is what a soak found.
type Result struct {
	Length      time.Duration `json:"length"`
	Environment []bed.Setting `json:"environment"`
	Queues      []Queue       `json:"queues"`
}

// Queue is what was seen of a queue.
type Queue struct {
	Name    string   `json:"name"`
	Samples []Sample `json:"samples"`
}

// errEnough ends a soak.
var errEnough = errors.New("soak: enough")

// Run runs the queues for as long as the configuration says. It calls tell after each
// sample.
func Run(ctx context.Context, cfg Config, tell func(sample int)) (r Result, err error) {
	var sites []*site
	defer func() {
		for _, s := range sites {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	for _, design := range designs {
		s, err := open(ctx, cfg, design)
		if err != nil {
			return r, err
		}
		sites = append(sites, s)
	}
	if r.Environment, err = sites[0].server.Settings(ctx); err != nil {
		return r, err
	}
	crew := newCrew(ctx)
	for _, s := range sites {
		s.start(crew)
	}
	crew.start(func(ctx context.Context) error { return watch(ctx, cfg, sites, tell) })
	if err := crew.wait(); !errors.Is(err, errEnough) {
		return r, err
	}
	r.Length = cfg.Length
	for _, s := range sites {
		r.Queues = append(r.Queues, Queue{Name: s.design.name, Samples: s.samples})
	}
	return r, nil
}

// watch takes the samples of all queues, after a warm-up of a lease's length. It has a
// transaction open from the end of the first third of them to the end of the second. Then
// it ends the soak.
func watch(ctx context.Context, cfg Config, sites []*site, tell func(sample int)) error {
	if err := sleep(ctx, cfg.lease()); err != nil {
		return err
	}
	began := time.Now()
	for _, s := range sites {
		if err := s.forget(ctx); err != nil {
			return err
		}
	}
	for n := 1; n <= cfg.count(); n++ {
		if err := sleep(ctx, time.Until(began.Add(time.Duration(n)*cfg.interval()))); err != nil {
			return err
		}
		for _, s := range sites {
			if err := s.sample(ctx, began); err != nil {
				return err
			}
			if err := s.turn(ctx, n, cfg.count()); err != nil {
				return err
			}
		}
		tell(n)
	}
	return errEnough
}
