package suite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/reaper"
)

var (
	_ Make = Library
	_ Make = Oracle
)

// Library is the library as it comes: its defaults, on the reference schema.
func Library(pool *pgxpool.Pool) (Contender, error) {
	r, err := reaper.New(pool, reaper.Config{})
	if err != nil {
		return Contender{}, err
	}
	return Contender{Name: library, Reap: func(ctx context.Context, limit int) (Count, error) {
		result, err := r.Apply(ctx, actor, limit)
		return func() (Tally, error) { return tallyOf(result) }, err
	}}, nil
}

func tallyOf(result *reaper.ApplyResult) (Tally, error) {
	if result.Refused || result.FailedCount > 0 {
		return Tally{}, fmt.Errorf("refused: %q, failures: %v", result.Reason, result.Failures)
	}
	return Tally{result.ResetCount, result.DeadLetterCount}, nil
}

// Oracle is the reference function, called from Go. Its answer is taken as it
// comes and not parsed.
func Oracle(pool *pgxpool.Pool) (Contender, error) {
	return Contender{Name: reference, Reap: func(ctx context.Context, limit int) (Count, error) {
		var answer []byte
		err := pool.QueryRow(ctx, `select fn_job_reap_stale_leases_apply($1, $2)`, actor, limit).Scan(&answer)
		return func() (t Tally, err error) {
			err = json.Unmarshal(answer, &t)
			return t, err
		}, err
	}}, nil
}
