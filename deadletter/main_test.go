package deadletter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

func TestMain(m *testing.M) { reapertest.Main(m) }

const (
	operator    = `operator's {queue} $1 \ "é"`
	actor       = `reaper's {dead_letter} $1 \ "é"`
	finalError  = `lease_expired_reaped_at_max_attempts; it's {function} $2`
	reaperError = "lease_expired_reaped_at_max_attempts"
)

// reap moves all stale leases with spent tries to the dead letters.
func reap(t *testing.T, db reaper.DB) *reaper.ApplyResult {
	t.Helper()
	result, err := reapertest.New(t, db, reaper.Config{Gates: reapertest.OpenGate}).Apply(t.Context(), actor, 100000)
	require.NoError(t, err)
	require.Empty(t, result.Failures)
	return result
}

// bury makes a dead job of each kind, the first of them dead for the longest, an
// hour apart, and returns the keys of the jobs.
func bury(t *testing.T, pool *pgxpool.Pool, kinds ...string) []string {
	t.Helper()
	ids := enqueue(t, pool, kinds...)
	require.Equal(t, len(kinds), reap(t, pool).DeadLetterCount)
	reapertest.Exec(t, pool, `
update job_dead_letter d set moved_at = now() - make_interval(hours => cardinality($1::uuid[]) - u.n::int + 1)
from unnest($1::uuid[]) with ordinality u(id, n) where d.job_id = u.id`, ids)
	return ids
}

// dieAgain lets live jobs die.
func dieAgain(t *testing.T, pool *pgxpool.Pool, ids ...string) {
	t.Helper()
	reapertest.Exec(t, pool, `
update job_queue set state = 'leased', attempts = max_attempts - 1, lease_owner = 'worker', lease_until = now() - '1s'::interval
where job_id = any($1::uuid[]) and state = 'retry_waiting'`, ids)
	require.Equal(t, len(ids), reap(t, pool).DeadLetterCount)
}

// letterOf returns the key of a job's newest letter.
func letterOf(t *testing.T, db reapertest.Execer, job string) string {
	t.Helper()
	return reapertest.One[string](t, db, `
select dead_letter_id::text from job_dead_letter where job_id = $1::text::uuid order by moved_at desc, dead_letter_id desc limit 1`, job)
}

// redriveAll redrives what a filter lets through.
func redriveAll(t *testing.T, db deadletter.DB, filter deadletter.Filter) *deadletter.RedriveResult {
	t.Helper()
	result, err := deadletter.Redrive(t.Context(), db, deadletter.Store{}, operator, filter, 100000)
	require.NoError(t, err)
	require.Equal(t, len(result.Redriven), result.RedrivenCount)
	require.Equal(t, len(result.Skipped), result.SkippedCount)
	require.Equal(t, len(result.Failures), result.FailedCount)
	return result
}

// openLetters is a database with the reference tables and dead jobs, one of each
// kind.
func openLetters(t *testing.T, kinds ...string) (*pgxpool.Pool, []string) {
	t.Helper()
	pool := pgtest.New(t)
	return pool, bury(t, pool, kinds...)
}

func list(t *testing.T, db deadletter.DB, filter deadletter.Filter, limit int) *deadletter.Page {
	t.Helper()
	page, err := deadletter.List(t.Context(), db, deadletter.Store{}, filter, limit)
	require.NoError(t, err)
	return page
}

func purgeAll(t *testing.T, db deadletter.DB, age time.Duration, cfg deadletter.PurgeConfig) *deadletter.PurgeResult {
	t.Helper()
	result, err := deadletter.Purge(t.Context(), db, deadletter.Store{}, age, cfg)
	require.NoError(t, err)
	return result
}

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
	ids := reapertest.Column(t, pool, `
insert into job_queue (job_kind, state, attempts, max_attempts, lease_owner, lease_until)
select kind, 'leased', 4, 5, 'worker', now() - '1d'::interval + n * '1s'::interval
from unnest($1::text[]) with ordinality u(kind, n)
returning job_id::text`, kinds)
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

// many returns n kinds.
func many(n int) []string {
	kinds := make([]string, n)
	for i := range kinds {
		kinds[i] = fmt.Sprintf("kind-%d", i)
	}
	return kinds
}

func jobsOf(result *deadletter.RedriveResult) []string {
	var ids []string
	for _, job := range result.Redriven {
		ids = append(ids, job.JobID)
	}
	return ids
}
