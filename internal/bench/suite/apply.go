package suite

import (
	"context"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// applyScattered reaps rows that lie far from each other, so that nearly each is
// on a page of its own.
func applyScattered() Scenario {
	return Scenario{
		Name:  "apply-scattered",
		About: "apply, limit 1000, the stale rows spread over the table",
		Run: func(ctx context.Context, env *Env) (Result, error) {
			return env.apply(ctx, env.scattered(), env.Batch, atLeast(1.8), atLeast(0.9))
		},
	}
}

// applyDense reaps rows that lie side by side.
func applyDense() Scenario {
	return Scenario{
		Name:  "apply-dense",
		About: "apply, limit 1000, the stale rows side by side",
		Run: func(ctx context.Context, env *Env) (Result, error) {
			shape := env.scattered()
			shape.Dense = true
			return env.apply(ctx, shape, env.Batch, atLeast(1.9), atLeast(0.85))
		},
	}
}

// applyFew reaps in batches in which the exchanges weigh more.
func applyFew() Scenario {
	return Scenario{
		Name:  "apply-few",
		About: "apply, limit 100, the stale rows spread over the table",
		Run: func(ctx context.Context, env *Env) (Result, error) {
			return env.apply(ctx, env.scattered(), env.Few, atLeast(1.6), atLeast(0.9))
		},
	}
}

// apply finds how fast the library reaps in batches of a limit.
func (env *Env) apply(ctx context.Context, shape bed.Shape, limit int, oracle, single *Goal) (r Result, err error) {
	samples, err := env.reap(ctx, shape, limit, all()...)
	if err != nil {
		return r, err
	}
	r.faster(samples, reference, oracle)
	r.faster(samples, statement, single)
	r.rates([]string{library, reference, statement}, samples, limit)
	return r, nil
}

// reap has contenders reap backlogs between them.
func (env *Env) reap(ctx context.Context, shape bed.Shape, limit int, makes ...Make) (Samples, error) {
	samples := Samples{}
	race := Race{Warmups: env.Warmups, Rounds: env.rounds(limit, len(makes)), Limit: limit}
	for range env.Repeats {
		err := env.on(ctx, shape, func(q *bed.Queue) error {
			list, err := connect(ctx, q, makes...)
			if err != nil {
				return err
			}
			more, err := race.run(ctx, list)
			samples.add(more)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return samples, nil
}
