package suite

import (
	"context"
	"runtime"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
)

// allocations counts what the library leaves to the garbage collector, pgx and
// all.
func allocations() Scenario {
	return Scenario{
		Name:  "allocations",
		About: "what an apply with limit 1000 allocates in Go",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			err = env.on(ctx, env.scattered(), func(q *bed.Queue) error { return env.allocate(ctx, q, &r) })
			return r, err
		},
	}
}

func (env *Env) allocate(ctx context.Context, q *bed.Queue, r *Result) error {
	list, err := connect(ctx, q, Library)
	if err != nil {
		return err
	}
	var objects, bytes []float64
	for round := range env.batches() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		count, err := list[0].Reap(ctx, env.Batch)
		runtime.ReadMemStats(&after)
		if err != nil {
			return err
		}
		done, err := count()
		if err != nil {
			return err
		}
		if round >= env.Warmups {
			objects = append(objects, float64(after.Mallocs-before.Mallocs)/float64(done.Jobs()))
			bytes = append(bytes, float64(after.TotalAlloc-before.TotalAlloc)/float64(done.Jobs()))
		}
	}
	r.find("objects a row", stat.Of(objects), "", atMost(2.6))
	r.find("bytes a row", stat.Of(bytes), "bytes", atMost(655))
	return nil
}
