package suite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/reaper"
)

// many is how many reapers make a crowd.
const many = 8

// crowd has reapers of eight machines drain one backlog together.
func crowd() Scenario {
	return Scenario{
		Name:  "crowd",
		About: "eight reapers drain one backlog at once, and one alone",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			var alone, together []float64
			for range env.Repeats {
				for _, turn := range []struct {
					reapers int
					rates   *[]float64
				}{{1, &alone}, {many, &together}} {
					rate, err := env.drainTogether(ctx, turn.reapers)
					if err != nil {
						return r, err
					}
					*turn.rates = append(*turn.rates, rate)
				}
			}
			r.find("eight reapers against one", stat.Of(stat.Ratios(together, alone)), "x", atLeast(1))
			r.measure("one reaper", stat.Of(alone), "rows/s")
			r.measure("eight reapers", stat.Of(together), "rows/s")
			return r, nil
		},
	}
}

// drainTogether returns how many rows a second reapers reap together.
func (env *Env) drainTogether(ctx context.Context, reapers int) (rate float64, err error) {
	err = env.on(ctx, env.scattered(), func(q *bed.Queue) error {
		list := make([]*reaper.Reaper, reapers)
		for i := range list {
			if list[i], err = warmReaper(ctx, q); err != nil {
				return err
			}
		}
		began := time.Now()
		done, err := drainAll(ctx, list, env.Batch)
		rate = float64(done) / time.Since(began).Seconds()
		if left := env.Stale - reapers - done; err == nil && left != 0 {
			err = fmt.Errorf("%d reapers left %d jobs", reapers, left)
		}
		return err
	})
	return rate, err
}

// warmReaper returns a reaper with a connection of its own, which has reaped one
// job.
func warmReaper(ctx context.Context, q *bed.Queue) (*reaper.Reaper, error) {
	pool, err := q.Connect(ctx)
	if err != nil {
		return nil, err
	}
	lib, err := reaper.New(pool, reaper.Config{})
	if err != nil {
		return nil, err
	}
	_, err = lib.Apply(ctx, actor, 1)
	return lib, err
}

// drainAll has every reaper drain at once, and returns how many jobs they reaped.
func drainAll(ctx context.Context, list []*reaper.Reaper, batch int) (done int, err error) {
	results, errs := make([]*reaper.DrainResult, len(list)), make([]error, len(list))
	var group sync.WaitGroup
	for i, lib := range list {
		group.Go(func() { results[i], errs[i] = lib.Drain(ctx, actor, batch) })
	}
	group.Wait()
	for _, result := range results {
		done += result.ResetCount + result.DeadLetterCount
	}
	return done, errors.Join(errs...)
}
