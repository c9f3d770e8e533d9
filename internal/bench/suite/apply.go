package suite

import (
	"context"
	"errors"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// applyScattered reaps rows that lie far from each other, so that nearly each is
// on a page of its own.
func applyScattered() Scenario {
	return Scenario{
		Name:  "apply-scattered",
		About: "apply, limit 1000, stale rows spread over the table",
		Run: func(ctx context.Context, env *Env) (Result, error) {
			shape := bed.Shape{Rows: env.Rows, Stale: env.Stale}
			return env.apply(ctx, shape, env.Batch, atLeast(1.8), atLeast(0.95))
		},
	}
}

// applyDense reaps rows that lie side by side.
func applyDense() Scenario {
	return Scenario{
		Name:  "apply-dense",
		About: "apply, limit 1000, stale rows side by side",
		Run: func(ctx context.Context, env *Env) (Result, error) {
			shape := bed.Shape{Rows: env.Rows, Stale: env.Stale, Dense: true}
			return env.apply(ctx, shape, env.Batch, atLeast(1.9), atLeast(0.9))
		},
	}
}

// applySmall reaps in batches in which the exchanges weigh more.
func applySmall() Scenario {
	return Scenario{
		Name:  "apply-100",
		About: "apply, limit 100, stale rows spread over the table",
		Run: func(ctx context.Context, env *Env) (Result, error) {
			shape := bed.Shape{Rows: env.Rows, Stale: env.Stale}
			return env.apply(ctx, shape, env.Small, atLeast(1.6), nil)
		},
	}
}

// apply has the contenders reap one backlog between them.
func (env *Env) apply(ctx context.Context, shape bed.Shape, limit int, oracle, statement *Goal) (r Result, err error) {
	q, err := env.Bed.Lay(ctx, shape)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, q.Close(ctx)) }()
	list, err := contenders(ctx, q)
	if err != nil {
		return r, err
	}
	race := Race{Warmups: env.Warmups, Rounds: env.rounds(limit, len(list)), Limit: limit, Want: limit}
	samples, err := race.run(ctx, list)
	if err != nil {
		return r, err
	}
	r.faster(samples, byRow, oracle)
	r.faster(samples, single, statement)
	r.rates(list, samples, limit)
	return r, nil
}
