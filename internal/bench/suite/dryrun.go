package suite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/reaper"
)

// capped is the name of the library's dry run that does not count everything.
const capped = "library, CountUpTo"

// dryRun shows a hundred jobs of a backlog that is the whole table.
func dryRun() Scenario {
	return Scenario{
		Name:  "dry-run",
		About: "dry run, limit 100, every row of the table stale",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			err = env.on(ctx, env.shape(env.Rows), func(q *bed.Queue) error {
				return env.show(ctx, q, &r)
			})
			return r, err
		},
	}
}

func (env *Env) show(ctx context.Context, q *bed.Queue, r *Result) error {
	upTo := env.Rows / 1000
	list, err := connect(ctx, q,
		shows(library, reaper.Config{}, env.Rows),
		shows(capped, reaper.Config{CountUpTo: upTo}, upTo),
		oracleShows(env.Rows),
	)
	if err != nil {
		return err
	}
	samples, err := Race{Warmups: env.Warmups, Rounds: env.Rounds, Limit: env.Few}.run(ctx, list)
	r.faster(samples, reference, atLeast(1))
	ratios := stat.Ratios(samples[reference], samples[capped])
	r.find(fmt.Sprintf("the same, with CountUpTo %d", upTo), stat.Of(ratios), "x", atLeast(50))
	r.times(names(list), samples)
	return err
}

// shows makes the library's dry run, which has to count as many stale leases as is
// said.
func shows(name string, cfg reaper.Config, count int) Make {
	return func(pool *pgxpool.Pool) (Contender, error) {
		lib, err := reaper.New(pool, cfg)
		if err != nil {
			return Contender{}, err
		}
		return Contender{Name: name, Reap: func(ctx context.Context, limit int) (Count, error) {
			result, err := lib.DryRun(ctx, limit)
			return func() (Tally, error) { return shown(result.StaleLeaseCount, count, len(result.Jobs)) }, err
		}}, nil
	}
}

// oracleShows makes the reference function's, whose answer is parsed off the clock.
func oracleShows(count int) Make {
	return func(pool *pgxpool.Pool) (Contender, error) {
		return Contender{Name: reference, Reap: func(ctx context.Context, limit int) (Count, error) {
			var answer []byte
			err := pool.QueryRow(ctx, `select fn_job_reap_stale_leases_dry_run($1)`, limit).Scan(&answer)
			return func() (Tally, error) {
				var result struct {
					Stale int               `json:"stale_lease_count"`
					Jobs  []json.RawMessage `json:"jobs"`
				}
				if err := json.Unmarshal(answer, &result); err != nil {
					return Tally{}, err
				}
				return shown(result.Stale, count, len(result.Jobs))
			}, err
		}}, nil
	}
}

// shown is what a dry run showed, if it counted right.
func shown(counted, want, jobs int) (Tally, error) {
	if counted != want {
		return Tally{}, fmt.Errorf("it counted %d stale leases, not %d", counted, want)
	}
	return Tally{Resets: jobs}, nil
}
