package deadletter_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

const (
	actor      = `reaper's {dead_letter} $1 \ "é"`
	finalError = `lease_expired_reaped_at_max_attempts; it's {function} $2`
)

// reference returns the names of the reference schema's queue.
func reference() deadletter.Queue {
	return deadletter.Queue{
		Table: pgx.Identifier{"job_queue"}, JobID: "job_id", JobKind: "job_kind", Attempts: "attempts", MaxAttempts: "max_attempts",
	}
}

// enqueue adds stale leases with four of five attempts used, one of each kind,
// oldest first, and returns their keys.
func enqueue(t *testing.T, pool *pgxpool.Pool, kinds ...string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
insert into job_queue (job_kind, state, attempts, max_attempts, lease_owner, lease_until)
select kind, 'leased', 4, 5, 'worker', now() - '1d'::interval + n * '1s'::interval
from unnest($1::text[]) with ordinality u(kind, n)
returning job_id::text`, kinds)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Len(t, ids, len(kinds))
	return ids
}

// claim locks jobs and bumps their attempts to five, as the reaper does.
func claim(t *testing.T, tx pgx.Tx, queue deadletter.Queue, ids []string) deadletter.Batch {
	t.Helper()
	batch := deadletter.Batch{Actor: actor, FinalError: finalError, Queue: queue}
	for _, id := range ids {
		batch.Jobs = append(batch.Jobs, deadletter.Job{ID: id, Attempts: 5})
	}
	sql := fmt.Sprintf(`update %s set %s = 5 where %s::text = any($1)`, queue.Table.Sanitize(),
		pgx.Identifier{queue.Attempts}.Sanitize(), pgx.Identifier{queue.JobID}.Sanitize())
	tag, err := tx.Exec(t.Context(), sql, ids)
	require.NoError(t, err)
	require.EqualValues(t, len(ids), tag.RowsAffected())
	return batch
}

// begin begins a transaction that ends with the test.
func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

func execute(t *testing.T, db interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		_, err := db.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
}

// value reads one value as a text, as the server prints it.
func value(t *testing.T, tx pgx.Tx, sql string, args ...any) string {
	t.Helper()
	var text string
	require.NoError(t, tx.QueryRow(t.Context(), sql, args...).Scan(&text))
	return text
}

// inEveryMode returns a pool for each way in which pgx can run a query.
func inEveryMode(t *testing.T, pool *pgxpool.Pool) map[pgx.QueryExecMode]*pgxpool.Pool {
	t.Helper()
	pools := map[pgx.QueryExecMode]*pgxpool.Pool{}
	for mode := pgx.QueryExecModeCacheStatement; mode <= pgx.QueryExecModeSimpleProtocol; mode++ {
		pools[mode] = pgtest.Connect(t, pool, func(config *pgxpool.Config) {
			config.ConnConfig.DefaultQueryExecMode = mode
		})
	}
	require.Len(t, pools, 5)
	return pools
}

// many returns n kinds.
func many(n int) []string {
	kinds := make([]string, n)
	for i := range kinds {
		kinds[i] = fmt.Sprintf("kind-%d", i)
	}
	return kinds
}
