package suite

import (
	"context"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/internal/bench/wire"
)

// applyOne reaps the job of one dead worker: what a reaper does most, when it
// does anything.
func applyOne() Scenario {
	return Scenario{
		Name:  "apply-one",
		About: "apply, one stale row",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			samples, err := env.quiet(ctx, 1)
			if err != nil {
				return r, err
			}
			r.slower(samples, reference, atMost(0.95))
			r.times([]string{library, reference, statement}, samples)
			return r, nil
		},
	}
}

// applyIdle reaps nothing, which is what a reaper does most of the time.
func applyIdle() Scenario {
	return Scenario{
		Name:  "apply-idle",
		About: "apply, the gates open, nothing stale",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			samples, err := env.quiet(ctx, 0)
			if err != nil {
				return r, err
			}
			r.slower(samples, reference, atMost(0.85))
			r.times([]string{library, reference, statement}, samples)
			err = env.idleExchanges(ctx, &r)
			return r, err
		},
	}
}

// quiet has the contenders reap a queue in which a few jobs are stale before each
// turn, and no others.
func (env *Env) quiet(ctx context.Context, stale int) (samples Samples, err error) {
	err = env.on(ctx, env.shape(0), func(q *bed.Queue) error {
		list, err := connect(ctx, q, all()...)
		if err != nil {
			return err
		}
		worker, err := q.Connect(ctx)
		if err != nil {
			return err
		}
		race := Race{
			Warmups: 10 * env.Warmups,
			Rounds:  env.Calls,
			Limit:   env.Batch,
			Want:    &stale,
			Before:  func(ctx context.Context, _ int) error { return kill(ctx, worker, stale) },
		}
		samples, err = race.run(ctx, list)
		return err
	})
	return samples, err
}

// idleExchanges counts the exchanges of an apply that finds nothing.
func (env *Env) idleExchanges(ctx context.Context, r *Result) error {
	return env.on(ctx, env.shape(0), func(q *bed.Queue) error {
		counter := &wire.Counter{}
		pool, err := q.Connect(ctx, counter.Attach)
		if err != nil {
			return err
		}
		contender, err := Library(pool)
		if err != nil {
			return err
		}
		exchanges, err := countExchanges(ctx, counter, contender, env.Batch)
		r.find("exchanges", stat.Exactly(float64(exchanges)), "", atMost(2))
		return err
	})
}

// countExchanges counts those of one batch, after one that has prepared its
// statements.
func countExchanges(ctx context.Context, counter *wire.Counter, contender Contender, limit int) (int64, error) {
	if _, err := contender.Reap(ctx, limit); err != nil {
		return 0, err
	}
	before := counter.Exchanges()
	_, err := contender.Reap(ctx, limit)
	return counter.Exchanges() - before, err
}
