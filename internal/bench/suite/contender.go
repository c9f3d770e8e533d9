package suite

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/reaper"
)

// actor reaps in every benchmark.
const actor = "bench"

// Contender is one way to reap.
type Contender struct {
	Name string
	// Reap reaps one batch. What it returns counts what was done, off the clock.
	Reap func(ctx context.Context, limit int) (Count, error)
}

// Count tells what a batch did.
type Count func() (Tally, error)

// Tally is what a batch did.
type Tally struct {
	Resets int `json:"reset_count"`
	Moves  int `json:"dead_letter_count"`
}

// jobs is how many there were.
func (t Tally) jobs() int { return t.Resets + t.Moves }

// Names of the contenders.
const (
	library = "library"
	byRow   = "oracle"
	single  = "single statement"
)

// contenders returns all three, each on a connection of its own.
func contenders(ctx context.Context, q *bed.Queue) ([]Contender, error) {
	var list []Contender
	for _, connect := range []func(*pgxpool.Pool) (Contender, error){newLibrary, newOracle, newSingle} {
		pool, err := q.Connect(ctx)
		if err != nil {
			return nil, err
		}
		contender, err := connect(pool)
		if err != nil {
			return nil, err
		}
		list = append(list, contender)
	}
	return list, nil
}

// newLibrary is the library as it comes.
func newLibrary(pool *pgxpool.Pool) (Contender, error) {
	r, err := reaper.New(pool, reaper.Config{})
	if err != nil {
		return Contender{}, err
	}
	return Contender{Name: library, Reap: func(ctx context.Context, limit int) (Count, error) {
		result, err := r.Apply(ctx, actor, limit)
		return func() (Tally, error) {
			if result.Refused || result.FailedCount > 0 {
				return Tally{}, fmt.Errorf("refused: %q, failures: %v", result.Reason, result.Failures)
			}
			return Tally{result.ResetCount, result.DeadLetterCount}, nil
		}, err
	}}, nil
}

// newOracle is the reference function, called from Go. Its answer is taken as
// it comes and not parsed.
func newOracle(pool *pgxpool.Pool) (Contender, error) {
	return Contender{Name: byRow, Reap: func(ctx context.Context, limit int) (Count, error) {
		var answer []byte
		err := pool.QueryRow(ctx, `select fn_job_reap_stale_leases_apply($1, $2)`, actor, limit).Scan(&answer)
		return func() (t Tally, err error) {
			err = json.Unmarshal(answer, &t)
			return t, err
		}, err
	}}, nil
}

// sqlSingle is the best single statement for the same work that we could write.
// One array of row addresses is a sixth faster than a join by key. A row that
// someone changes while it waits for its lock has a new address, which the
// statement's snapshot does not see: it is left for the next batch.
//
//	$1 actor  text
//	$2 limit  bigint
//
//go:embed single.sql
var sqlSingle string

// settled is a row of sqlSingle: what the library's result says of a job.
type settled struct {
	jobID        pgtype.UUID
	spent        bool
	attempts     int32
	scheduledAt  time.Time
	deadLetterID pgtype.UUID
}

// newSingle is the single statement.
func newSingle(pool *pgxpool.Pool) (Contender, error) {
	return Contender{Name: single, Reap: func(ctx context.Context, limit int) (Count, error) {
		rows, err := pool.Query(ctx, sqlSingle, actor, limit)
		if err != nil {
			return nil, err
		}
		jobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s settled, err error) {
			return s, row.Scan(&s.jobID, &s.spent, &s.attempts, &s.scheduledAt, &s.deadLetterID)
		})
		return func() (Tally, error) { return tally(jobs), nil }, err
	}}, nil
}

func tally(jobs []settled) (t Tally) {
	for _, job := range jobs {
		if job.spent {
			t.Moves++
		} else {
			t.Resets++
		}
	}
	return t
}
