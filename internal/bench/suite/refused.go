package suite

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/internal/bench/wire"
	"github.com/lease-governance/leasereaper/reaper"
)

// applyRefused is a reaper whose gate stays closed, while there is something to
// reap.
func applyRefused() Scenario {
	return Scenario{
		Name:  "apply-refused",
		About: "apply, a gate closed, again and again",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			err = env.on(ctx, env.scattered(), func(q *bed.Queue) error { return env.refused(ctx, q, &r) })
			return r, err
		},
	}
}

const sqlCloseGate = `-- bench.close_gate
update queue_config
set value = 'false'
where key = 'queue.lease.reaper_enabled'`

func (env *Env) refused(ctx context.Context, q *bed.Queue, r *Result) error {
	counter := &wire.Counter{}
	pool, err := q.Connect(ctx, counter.Attach)
	if err != nil {
		return err
	}
	watch, err := q.Connect(ctx)
	if err != nil {
		return err
	}
	if _, err := watch.Exec(ctx, sqlCloseGate); err != nil {
		return err
	}
	refuse, err := refuser(pool)
	if err != nil {
		return err
	}
	for range 2 { // the first meets the gate, the second prepares what is asked from then on
		if err := refuse(ctx); err != nil {
			return err
		}
	}
	return env.watchRefusals(ctx, watch, counter, refuse, r)
}

// refuser returns an apply that has to be refused.
func refuser(pool *pgxpool.Pool) (func(context.Context) error, error) {
	lib, err := reaper.New(pool, reaper.Config{})
	return func(ctx context.Context) error {
		result, err := lib.Apply(ctx, actor, 1000)
		if err == nil && !result.Refused {
			err = fmt.Errorf("it was not refused, and reaped %d jobs", len(result.Actions))
		}
		return err
	}, err
}

// watchRefusals counts what each refusal costs the server. Something else of the
// server's may write a record now and then, so what counts is the median.
func (env *Env) watchRefusals(
	ctx context.Context, watch *pgxpool.Pool, counter *wire.Counter, refuse func(context.Context) error, r *Result,
) error {
	marker, err := transaction(ctx, watch)
	if err != nil {
		return err
	}
	var exchanges, written []float64
	for range env.Calls {
		before := counter.Exchanges()
		bytes, err := wal(ctx, watch, func() error { return refuse(ctx) })
		if err != nil {
			return err
		}
		exchanges = append(exchanges, float64(counter.Exchanges()-before))
		written = append(written, float64(bytes))
	}
	locked, err := lockedSince(ctx, watch, marker)
	r.find("exchanges", stat.Of(exchanges), "", atMost(2))
	r.find("WAL", stat.Of(written), "bytes", atMost(0))
	r.find("rows locked", stat.Exactly(float64(locked)), "", atMost(0))
	return err
}
