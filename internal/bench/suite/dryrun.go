package suite

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/reaper"
)

// dryRun shows a hundred jobs of a backlog that is the whole table.
func dryRun() Scenario {
	return Scenario{
		Name:  "dry-run",
		About: "dry run, limit 100, every row of the table stale",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			err = env.on(ctx, bed.Shape{Rows: env.Rows, Stale: env.Rows}, func(q *bed.Queue) error {
				list, err := connect(ctx, q, env.libraryShows, env.oracleShows)
				if err != nil {
					return err
				}
				race := Race{Warmups: env.Warmups, Rounds: env.Rounds, Limit: env.Few}
				samples, err := race.run(ctx, list)
				r.faster(samples, reference, atLeast(1))
				r.notRun("speed with CountUpTo against the oracle", "Config.CountUpTo is not there yet", atLeast(50))
				r.times(names(list), samples)
				return err
			})
			return r, err
		},
	}
}

// libraryShows is the library's dry run, which counts every stale lease.
func (env *Env) libraryShows(pool *pgxpool.Pool) (Contender, error) {
	lib, err := reaper.New(pool, reaper.Config{})
	if err != nil {
		return Contender{}, err
	}
	return Contender{Name: library, Reap: func(ctx context.Context, limit int) (Count, error) {
		result, err := lib.DryRun(ctx, limit)
		return func() (Tally, error) {
			if result.StaleLeaseCount != env.Rows {
				return Tally{}, fmt.Errorf("it counted %d stale leases, not %d", result.StaleLeaseCount, env.Rows)
			}
			return Tally{Resets: len(result.Jobs)}, nil
		}, err
	}}, nil
}

// oracleShows is the reference function's.
func (*Env) oracleShows(pool *pgxpool.Pool) (Contender, error) {
	return Contender{Name: reference, Reap: func(ctx context.Context, limit int) (Count, error) {
		var answer []byte
		err := pool.QueryRow(ctx, `select fn_job_reap_stale_leases_dry_run($1)`, limit).Scan(&answer)
		return func() (Tally, error) { return Tally{Resets: limit}, nil }, err
	}}, nil
}
