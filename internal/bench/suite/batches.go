package suite

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/bench/stat"
)

// applyMany reaps as many rows in one large batch as in ten small ones. What grows
// faster than the batch shows here.
func applyMany() Scenario {
	return Scenario{
		Name:  "apply-many",
		About: "apply, limit 10000 against limit 1000, the stale rows spread over the table",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			large, small := fmt.Sprintf("limit %d", env.Many), fmt.Sprintf("limit %d", env.Batch)
			samples, err := env.reap(ctx, env.scattered(), env.Many,
				inBatches(env.Many, large, Library), inBatches(env.Batch, small, Library))
			if err != nil {
				return r, err
			}
			ratios := stat.Ratios(samples[large], samples[small])
			r.find(fmt.Sprintf("cost a row, %s against %s", large, small), stat.Of(ratios), "x", atMost(1))
			r.rates([]string{large, small}, samples, env.Many)
			return r, nil
		},
	}
}

// inBatches makes a contender that reaps a turn's jobs in batches.
func inBatches(batch int, name string, entrant Make) Make {
	return func(pool *pgxpool.Pool) (Contender, error) {
		one, err := entrant(pool)
		return Contender{Name: name, Reap: func(ctx context.Context, limit int) (Count, error) {
			var counts []Count
			for left := limit; left > 0; left -= batch {
				count, err := one.Reap(ctx, min(left, batch))
				if err != nil {
					return nil, err
				}
				counts = append(counts, count)
			}
			return func() (Tally, error) { return sum(counts) }, nil
		}}, err
	}
}

func sum(counts []Count) (total Tally, err error) {
	for _, count := range counts {
		done, err := count()
		if err != nil {
			return Tally{}, err
		}
		total.Resets, total.Moves = total.Resets+done.Resets, total.Moves+done.Moves
	}
	return total, nil
}
