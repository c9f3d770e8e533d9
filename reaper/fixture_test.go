package reaper_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/oracle"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

const actor = "test-reaper"

// execer is a pool, a connection or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// openQueue is a database with the reference tables and all gates open.
func openQueue(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.New(t)
	openGates(t, pool)
	return pool
}

func openGates(t testing.TB, db execer) {
	t.Helper()
	exec(t, db, `insert into queue_config (key, value) values
		('queue.job_substrate.enabled', 'true'),
		('queue.lease.reaper_enabled', 'true'),
		('queue.lease.reaper_dry_run_only', 'false')
		on conflict (key) do update set value = excluded.value`)
}

func closeGate(t testing.TB, db execer) {
	t.Helper()
	exec(t, db, `update queue_config set value = 'false' where key = $1`, gates.ReaperEnabled)
}

// withOracle adds the reference functions to the database.
func withOracle(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	exec(t, pool, oracle.Functions)
	return pool
}

func newReaper(t testing.TB, db reaper.DB, cfg reaper.Config) *reaper.Reaper {
	t.Helper()
	r, err := reaper.New(db, cfg)
	require.NoError(t, err)
	return r
}

// open is a gate source for tests that are not about gates.
var open = gates.Static{SubstrateEnabled: true, ReaperEnabled: true}

func apply(t testing.TB, r *reaper.Reaper, limit int) *reaper.ApplyResult {
	t.Helper()
	result, err := r.Apply(t.Context(), actor, limit)
	require.NoError(t, err)
	require.False(t, result.Refused, result.Reason)
	return result
}

// refused is an apply that meets a closed gate.
func refused(t testing.TB, r *reaper.Reaper) {
	t.Helper()
	result, err := r.Apply(t.Context(), actor, 10)
	require.NoError(t, err)
	require.True(t, result.Refused)
}

func exec(t testing.TB, db execer, sql string, args ...any) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// one reads a single value.
func one[T any](t testing.TB, db execer, sql string, args ...any) T {
	t.Helper()
	var value T
	require.NoError(t, db.QueryRow(t.Context(), sql, args...).Scan(&value))
	return value
}

// stale inserts n jobs whose leases ended, one second apart, with kind and the
// given attempts of max.
func stale(t testing.TB, db execer, kind string, n, attempts, maxAttempts int) {
	t.Helper()
	exec(t, db, `insert into job_queue (job_kind, state, attempts, max_attempts, lease_owner, lease_until)
		select $1, 'leased', $2, $3, 'worker-' || i, now() - make_interval(secs => i)
		from generate_series(1, $4::int) i`, kind, attempts, maxAttempts, n)
}

// states counts the queue's rows by state.
func states(t testing.TB, db execer) map[string]int {
	t.Helper()
	rows, err := db.Query(t.Context(), `select state, count(*)::int from job_queue group by state`)
	require.NoError(t, err)
	counts := map[string]int{}
	var state string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		counts[state] = n
		return nil
	})
	require.NoError(t, err)
	return counts
}

// fingerprint is the content and the version of every row of the tables.
func fingerprint(t testing.TB, db execer) string {
	t.Helper()
	return one[string](t, db, `select concat_ws('|',
		(select md5(string_agg(q::text || q.xmin || q.xmax || q.ctid, ',' order by q.job_id)) from job_queue q),
		(select md5(string_agg(d::text || d.xmin || d.ctid, ',' order by d.dead_letter_id)) from job_dead_letter d),
		(select md5(string_agg(c::text || c.xmin || c.ctid, ',' order by c.key)) from queue_config c))`)
}

func toJSON(t testing.TB, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

// waitForLock returns when a session of this database waits for a lock with a
// statement like the pattern.
func waitForLock(t testing.TB, db execer, like string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return one[bool](t, db, `select exists (select from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query like $1)`, like)
	}, waiting, tick)
}

// How long a test waits for an event at most, and how often it looks.
const (
	waiting = 30 * time.Second
	tick    = time.Millisecond
)
