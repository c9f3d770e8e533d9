package suite

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/reaper"
)

// deadIndex is a loop after an outage of which every job has left the queue, while
// an old snapshot keeps their index entries: whoever looks for the oldest lease
// passes all of them.
func deadIndex() Scenario {
	return Scenario{
		Name:  "dead-index",
		About: "Run with nothing to do, a dead index entry for every row and an old snapshot open",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			fixtures := []bed.Fixture{env.shape(0).Fixture(), env.shape(env.Rows).Fixture()}
			err = env.onEach(ctx, fixtures, func(queues []*bed.Queue) error {
				return env.deadTuples(ctx, queues[0], queues[1], &r)
			})
			return r, err
		},
	}
}

// sqlForget takes every job out of the index.
const sqlForget = `-- bench.forget
update job_queue
set state = 'retry_waiting', lease_owner = null, lease_until = null
where state = 'leased'`

// deadTuples has loops and applies find nothing in a clean queue, and in one whose
// index is full of dead tuples.
func (env *Env) deadTuples(ctx context.Context, clean, dead *bed.Queue, r *Result) error {
	worker, err := dead.Connect(ctx)
	if err != nil {
		return err
	}
	release, err := oldSnapshot(ctx, dead)
	if err != nil {
		return err
	}
	defer release()
	if _, err := worker.Exec(ctx, sqlForget); err != nil {
		return err
	}
	idle, err := env.looks(ctx, clean, dead)
	if err != nil {
		return err
	}
	applies, err := env.bare(ctx, clean, dead)
	if err != nil {
		return err
	}
	r.find("idle pass of Run against a clean index", stat.Of(stat.Ratios(idle[1], idle[0])), "x", atMost(3))
	for i, name := range []string{"clean index", "dead entries"} {
		r.times([]string{"idle pass of Run, " + name}, Samples{"idle pass of Run, " + name: idle[i]})
		r.times([]string{"idle Apply, " + name}, Samples{"idle Apply, " + name: applies[i]})
	}
	return nil
}

// oldSnapshot opens a transaction that sees the rows as they are now, and so keeps
// them, until it is released.
func oldSnapshot(ctx context.Context, q *bed.Queue) (release func(), err error) {
	pool, err := q.Connect(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `select from job_queue limit 1`); err != nil {
		return nil, errors.Join(err, tx.Rollback(ctx))
	}
	return func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }, nil
}

// looks runs a loop on both queues at once, and returns the seconds of the passes
// that found nothing to do.
func (env *Env) looks(ctx context.Context, queues ...*bed.Queue) ([][]float64, error) {
	took, errs := make([][]float64, len(queues)), make([]error, len(queues))
	var group sync.WaitGroup
	for i, q := range queues {
		group.Go(func() { took[i], errs[i] = env.idlePasses(ctx, q) })
	}
	group.Wait()
	return took, errors.Join(errs...)
}

// errEnough ends a loop that has passed often enough.
var errEnough = errors.New("enough")

// idlePasses runs a loop until it has passed often enough. It wakes often because
// there is a worker whose lease is always about to end.
func (env *Env) idlePasses(ctx context.Context, q *bed.Queue) (took []float64, err error) {
	pool, err := q.Connect(ctx, func(config *pgxpool.Config) { config.MaxConns = 2 })
	if err != nil {
		return nil, err
	}
	lib, err := reaper.New(pool, reaper.Config{})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		if err := renew(ctx, pool, sync.OnceFunc(func() { close(renewed) })); err != nil {
			stop(err)
		}
	})
	select {
	case <-renewed:
	case <-ctx.Done():
	}
	err = lib.Run(ctx, actor, reaper.RunConfig{
		MinInterval: time.Millisecond, Interval: 5 * time.Second, Settle: 1,
		OnPass: func(_ context.Context, pass reaper.Pass) {
			switch {
			case pass.Err != nil:
				stop(pass.Err)
			case len(pass.Result.Actions) == 0:
				took = append(took, pass.Took.Seconds())
			}
			if len(took) >= env.Warmups+env.Rounds {
				stop(errEnough)
			}
		},
	})
	stop(err) // it may have ended by itself
	group.Wait()
	if !errors.Is(err, errEnough) {
		return nil, err
	}
	return took[env.Warmups:], nil
}

// bare returns the seconds that applies of their own take to find nothing: they
// remember no place, and begin at the oldest entry.
func (env *Env) bare(ctx context.Context, queues ...*bed.Queue) ([][]float64, error) {
	took, none := make([][]float64, len(queues)), 0
	for i, q := range queues {
		list, err := connect(ctx, q, Library)
		if err != nil {
			return nil, err
		}
		race := Race{Warmups: 1, Rounds: min(env.Rounds, 5), Limit: env.Batch, Want: &none}
		samples, err := race.run(ctx, list)
		if err != nil {
			return nil, err
		}
		took[i] = samples[library]
	}
	return took, nil
}
