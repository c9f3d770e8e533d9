package reapertest

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Column reads the values of one column.
func Column(t testing.TB, db Execer, sql string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return values
}

// InEveryMode returns a pool for each way in which pgx can run a query.
func InEveryMode(t *testing.T, pool *pgxpool.Pool) map[pgx.QueryExecMode]*pgxpool.Pool {
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

// RequireAgreement requires that the queue and the dead letters agree: a job is dead if and
// only if it has one letter that was not redriven.
func RequireAgreement(t testing.TB, db Execer) {
	t.Helper()
	require.Empty(t, Column(t, db, `
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
where state = 'retry_waiting'
and (attempts <> 0 or lease_owner is not null or lease_until is not null or last_error is not null)`))
}
