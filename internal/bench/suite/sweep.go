package suite

import (
	"context"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
)

// batchSizes shows from which size on a larger batch gains nothing.
func batchSizes() Scenario {
	return Scenario{
		Name:  "batch-sizes",
		About: "apply, from small batches to large ones",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			for _, size := range env.Batches {
				samples, err := env.reap(ctx, env.scattered(), size, all()...)
				if err != nil {
					return r, err
				}
				for _, name := range []string{library, reference, statement} {
					rates := stat.Each(samples[name], func(seconds float64) float64 { return float64(size) / seconds })
					r.plot(name, size, stat.Of(rates))
				}
			}
			return r, nil
		},
	}
}

// backlogs shows what the jobs that are not in a batch cost it.
func backlogs() Scenario {
	return Scenario{
		Name:  "backlogs",
		About: "apply, limit 100, from small backlogs to a large one",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			for _, stale := range env.Backlogs {
				samples, err := env.backlog(ctx, stale)
				if err != nil {
					return r, err
				}
				for _, name := range []string{library, reference} {
					times := stat.Each(samples[name], func(seconds float64) float64 { return seconds * 1000 })
					r.plot(name, stale, stat.Of(times))
				}
			}
			return r, nil
		},
	}
}

// backlog has contenders reap small batches of a backlog that stays as long as it
// is: as many workers die as jobs were reaped.
func (env *Env) backlog(ctx context.Context, stale int) (samples Samples, err error) {
	err = env.on(ctx, env.shape(stale), func(q *bed.Queue) error {
		list, err := connect(ctx, q, Library, Oracle)
		if err != nil {
			return err
		}
		worker, err := q.Connect(ctx)
		if err != nil {
			return err
		}
		race := Race{Warmups: env.Warmups, Rounds: env.Rounds, Limit: env.Few}
		if stale < env.Rows { // else no job is left to be claimed
			race.Before = func(ctx context.Context, limit int) error { return kill(ctx, worker, limit) }
		}
		samples, err = race.run(ctx, list)
		return err
	})
	return samples, err
}
