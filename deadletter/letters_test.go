package deadletter_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

const operator = `operator's {queue} $1 \ "é"`

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// one reads a single value.
func one[T any](t *testing.T, db querier, sql string, args ...any) T {
	t.Helper()
	var value T
	require.NoError(t, db.QueryRow(t.Context(), sql, args...).Scan(&value))
	return value
}

// column reads the values of one column.
func column(t *testing.T, db querier, sql string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return values
}

// reap moves all stale leases with spent tries to the dead letters.
func reap(t *testing.T, db reaper.DB) *reaper.ApplyResult {
	t.Helper()
	r, err := reaper.New(db, reaper.Config{Gates: gates.Static{SubstrateEnabled: true, ReaperEnabled: true}})
	require.NoError(t, err)
	result, err := r.Apply(t.Context(), actor, 100000)
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
	_, err := pool.Exec(t.Context(), `
update job_dead_letter d set moved_at = now() - make_interval(hours => cardinality($1::uuid[]) - u.n::int + 1)
from unnest($1::uuid[]) with ordinality u(id, n) where d.job_id = u.id`, ids)
	require.NoError(t, err)
	return ids
}

// dieAgain lets live jobs die.
func dieAgain(t *testing.T, pool *pgxpool.Pool, ids ...string) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
update job_queue set state = 'leased', attempts = max_attempts - 1, lease_owner = 'worker', lease_until = now() - '1s'::interval
where job_id = any($1::uuid[]) and state = 'retry_waiting'`, ids)
	require.NoError(t, err)
	require.Equal(t, len(ids), reap(t, pool).DeadLetterCount)
}

// letterOf returns the key of a job's newest letter.
func letterOf(t *testing.T, db querier, job string) string {
	t.Helper()
	return one[string](t, db, `
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

// requireAgreement wants the queue's rows and their letters to tell the same: a
// job is dead if and only if it has a letter that was not redriven, and just one.
func requireAgreement(t *testing.T, db querier) {
	t.Helper()
	require.Empty(t, column(t, db, `
select 'dead without a letter: ' || job_id
from job_queue q
where state = 'dead_letter'
and not exists (select from job_dead_letter d where d.job_id = q.job_id and redriven_at is null)
union all
select 'alive with a letter: ' || job_id
from job_queue q
where state <> 'dead_letter'
and exists (select from job_dead_letter d where d.job_id = q.job_id and redriven_at is null)
union all
select 'dead twice: ' || job_id
from job_dead_letter
where redriven_at is null
group by job_id
having count(*) > 1
union all
select 'half marked: ' || dead_letter_id
from job_dead_letter
where (redriven_at is null) <> (redriven_by is null)
union all
select 'not as redriven: ' || job_id
from job_queue
where state = 'retry_waiting' and (attempts <> 0 or lease_owner is not null or lease_until is not null or last_error is not null)`))
}

// fingerprint is the content and the version of every row of the tables.
func fingerprint(t *testing.T, db querier) string {
	t.Helper()
	return one[string](t, db, `select concat_ws('|',
		(select md5(string_agg(q::text || q.xmin || q.ctid, ',' order by q.job_id)) from job_queue q),
		(select md5(string_agg(d::text || d.xmin || d.ctid, ',' order by d.dead_letter_id)) from job_dead_letter d))`)
}

// openLetters is a database with the reference tables and dead jobs, one of each
// kind.
func openLetters(t *testing.T, kinds ...string) (*pgxpool.Pool, []string) {
	t.Helper()
	pool := pgtest.New(t)
	return pool, bury(t, pool, kinds...)
}
