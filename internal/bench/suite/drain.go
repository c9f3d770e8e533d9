package suite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/reaper"
)

// drain settles a backlog that is the whole table.
func drain() Scenario {
	return Scenario{
		Name:  "drain",
		About: "drain of a table in which every row is stale, in batches of 1000",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			whole := bed.Shape{Rows: env.Rows, Stale: env.Rows}
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
		return 0, fmt.Errorf("the drain settled %d jobs, not %d", done, env.Rows)
	}
	tenth := max(1, len(diary.took)/10)
	first, last := stat.Of(diary.took[:tenth]), stat.Of(diary.took[len(diary.took)-tenth:])
	r.find("time of a batch, last tenth against first", stat.Exactly(last.Median/first.Median), "x", atMost(1.2))
	r.find("heap in Go, at its peak", stat.Exactly(float64(heap.bytes)/(1<<20)), "MiB", atMost(32))
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
	return bytes, err
}

// diary notes how long each batch took. As a log handler it hears of each apply
// that changed something, after its commit, and takes no part in it.
type diary struct {
	last time.Time
	took []float64 // seconds
}

func (d *diary) write() {
	now := time.Now()
	d.took, d.last = append(d.took, now.Sub(d.last).Seconds()), now
}

// rate is how many rows a second the batches came to.
func (d *diary) rate(batch int) stat.Spread {
	return stat.Of(stat.Each(d.took, func(seconds float64) float64 { return float64(batch) / seconds }))
}

var _ slog.Handler = (*diary)(nil)

// Enabled is part of slog.Handler.
func (*diary) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelInfo }

// Handle is part of slog.Handler.
func (d *diary) Handle(context.Context, slog.Record) error {
	d.write()
	return nil
}

// WithAttrs is part of slog.Handler.
func (d *diary) WithAttrs([]slog.Attr) slog.Handler { return d }

// WithGroup is part of slog.Handler.
func (d *diary) WithGroup(string) slog.Handler { return d }

// peak is the most that the heap's objects, the dead ones among them that no
// collection has freed yet, have taken.
type peak struct{ bytes uint64 }

// watch looks at the heap each millisecond, until it is stopped.
func (p *peak) watch() (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.look()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); group.Wait() }
}

func (p *peak) look() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	p.bytes = max(p.bytes, sample[0].Value.Uint64())
}
