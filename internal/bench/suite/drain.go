package suite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/reaper"
)

// drain reaps a backlog that is the whole table.
func drain() Scenario {
	return Scenario{
		Name:  "drain",
		About: "drain of a table in which every row is stale, in batches of 1000",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			whole := env.shape(env.Rows)
			var drained, looped int64
			err = errors.Join(
				env.on(ctx, whole, func(q *bed.Queue) (err error) {
					drained, err = env.drainLibrary(ctx, q, &r)
					return err
				}),
				env.on(ctx, whole, func(q *bed.Queue) (err error) {
					looped, err = env.drainOracle(ctx, q, &r)
					return err
				}),
			)
			r.find("WAL against the oracle", stat.Exactly(float64(drained)/float64(looped)), "x", atMost(1))
			return r, err
		},
	}
}

// drainLibrary returns how much WAL a drain wrote.
func (env *Env) drainLibrary(ctx context.Context, q *bed.Queue, r *Result) (int64, error) {
	pool, err := q.Connect(ctx)
	if err != nil {
		return 0, err
	}
	diary := &diary{last: time.Now()}
	lib, err := reaper.New(pool, reaper.Config{Logger: slog.New(diary)})
	if err != nil {
		return 0, err
	}
	var result *reaper.DrainResult
	var heap peak
	bytes, err := wal(ctx, pool, func() (err error) {
		stop := heap.watch()
		defer stop()
		result, err = lib.Drain(ctx, actor, env.Batch)
		return err
	})
	if err != nil {
		return 0, err
	}
	if done := result.ResetCount + result.DeadLetterCount; done != env.Rows {
		return 0, fmt.Errorf("the drain reaped %d jobs, not %d", done, env.Rows)
	}
	r.find("WAL a row", stat.Exactly(float64(bytes)/float64(env.Rows)), "bytes", atMost(755))
	r.find("time of a batch, last tenth against first", diary.growth(), "x", atMost(1.2))
	r.find("peak of the heap in Go", stat.Exactly(float64(heap.bytes)/(1<<20)), "MiB", atMost(32))
	r.measure(library, diary.rate(env.Batch), "rows/s")
	return bytes, nil
}

// drainOracle returns how much WAL the reference function wrote for the same
// backlog.
func (env *Env) drainOracle(ctx context.Context, q *bed.Queue, r *Result) (int64, error) {
	pool, err := q.Connect(ctx)
	if err != nil {
		return 0, err
	}
	contender, err := Oracle(pool)
	if err != nil {
		return 0, err
	}
	diary := &diary{last: time.Now()}
	bytes, err := wal(ctx, pool, func() error {
		for {
			count, err := contender.Reap(ctx, env.Batch)
			if err != nil {
				return err
			}
			diary.write()
			if done, err := count(); err != nil || done.Jobs() == 0 {
				return err
			}
		}
	})
	r.measure(reference, diary.rate(env.Batch), "rows/s")
	r.measure("oracle, last tenth against first", diary.growth(), "x")
	return bytes, err
}
