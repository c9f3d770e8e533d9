package suite

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// sqlKill has the worker of one waiting job claim it and die.
const sqlKill = `-- bench.kill
update job_queue
set state = 'leased', lease_owner = 'worker', lease_until = now() - interval '1 second'
where job_id = (select job_id from job_queue where state = 'ready' limit 1)`

// applyOne reaps the job of one dead worker: what a reaper does most, when it
// does anything.
func applyOne() Scenario {
	return Scenario{
		Name:  "apply-one",
		About: "apply, one stale row",
		Run: func(ctx context.Context, env *Env) (Result, error) {
			return env.quiet(ctx, 1, func(r *Result, samples map[string]Sample) {
				r.latency(samples, byRow, atMost(1.05))
			})
		},
	}
}

// applyIdle reaps nothing, which is what a reaper does most of the time.
func applyIdle() Scenario {
	return Scenario{
		Name:  "apply-idle",
		About: "apply, gates open, nothing stale",
		Run: func(ctx context.Context, env *Env) (Result, error) {
			return env.quiet(ctx, 0, func(r *Result, samples map[string]Sample) {
				r.latency(samples, byRow, atMost(0.75))
			})
		},
	}
}

// quiet has the contenders reap a queue in which a few rows are stale before each
// turn, and no others.
func (env *Env) quiet(ctx context.Context, stale int, find func(*Result, map[string]Sample)) (r Result, err error) {
	q, err := env.Bed.Lay(ctx, bed.Shape{Rows: env.Rows})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, q.Close(ctx)) }()
	list, err := contenders(ctx, q)
	if err != nil {
		return r, err
	}
	worker, err := q.Connect(ctx)
	if err != nil {
		return r, err
	}
	race := Race{
		Warmups: 10 * env.Warmups, Rounds: env.Rounds, Limit: env.Batch, Want: stale, Before: kill(worker, stale),
	}
	samples, err := race.run(ctx, list)
	if err != nil {
		return r, err
	}
	find(&r, samples)
	r.times(list, samples)
	return r, nil
}

// kill has workers die before a turn.
func kill(worker *pgxpool.Pool, stale int) func(context.Context) error {
	return func(ctx context.Context) error {
		for range stale {
			if _, err := worker.Exec(ctx, sqlKill); err != nil {
				return err
			}
		}
		return nil
	}
}
