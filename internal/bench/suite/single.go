package suite

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

var _ Make = Single

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

// reaped is a row of sqlSingle: what the library's result says of a job.
type reaped struct {
	jobID        pgtype.UUID
	spent        bool
	attempts     int32
	scheduledAt  time.Time
	deadLetterID pgtype.UUID
}

// Single is the single statement, called from Go.
func Single(pool *pgxpool.Pool) (Contender, error) {
	return Contender{Name: statement, Reap: func(ctx context.Context, limit int) (Count, error) {
		rows, err := pool.Query(ctx, sqlSingle, actor, limit)
		if err != nil {
			return nil, err
		}
		jobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s reaped, err error) {
			err = row.Scan(&s.jobID, &s.spent, &s.attempts, &s.scheduledAt, &s.deadLetterID)
			return s, err
		})
		return func() (Tally, error) { return tallyReaped(jobs), nil }, err
	}}, nil
}

func tallyReaped(jobs []reaped) (t Tally) {
	for _, job := range jobs {
		if job.spent {
			t.Moves++
		} else {
			t.Resets++
		}
	}
	return t
}
