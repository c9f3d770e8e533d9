package reapertest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/oracle"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// Actor is the actor of the tests' applies.
const Actor = "test-reaper"

// Execer is a pool, a connection or a transaction.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// OpenQueue returns a database with the reference tables and all gates open.
func OpenQueue(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.New(t)
	OpenGates(t, pool)
	return pool
}

// OpenGates opens all gates.
func OpenGates(t testing.TB, db Execer) {
	t.Helper()
	Exec(t, db, `insert into queue_config (key, value) values
		('queue.job_substrate.enabled', 'true'),
		('queue.lease.reaper_enabled', 'true'),
		('queue.lease.reaper_dry_run_only', 'false')
		on conflict (key) do update set value = excluded.value`)
}

// CloseGate closes one gate.
func CloseGate(t testing.TB, db Execer) {
	t.Helper()
	Exec(t, db, `update queue_config set value = 'false' where key = $1`, gates.ReaperEnabled)
}

// WithOracle adds the reference functions to the database.
func WithOracle(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	Exec(t, pool, oracle.Functions)
	return pool
}

// New returns a Reaper. Without cfg.Gates it reads the gates from the table.
func New(t testing.TB, db reaper.DB, cfg reaper.Config) *reaper.Reaper {
	t.Helper()
	r, err := reaper.New(db, cfg)
	require.NoError(t, err)
	return r
}

// Apply runs an apply that must not fail or be refused.
func Apply(t testing.TB, r *reaper.Reaper, limit int) *reaper.ApplyResult {
	t.Helper()
	result, err := r.Apply(t.Context(), Actor, limit)
	require.NoError(t, err)
	require.False(t, result.Refused, result.Reason)
	return result
}

// RequireRefused runs an apply that must be refused.
func RequireRefused(t testing.TB, r *reaper.Reaper) {
	t.Helper()
	result, err := r.Apply(t.Context(), Actor, 10)
	require.NoError(t, err)
	require.True(t, result.Refused)
}

// Exec runs statements.
func Exec(t testing.TB, db Execer, sql string, args ...any) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// One reads a single value.
func One[T any](t testing.TB, db Execer, sql string, args ...any) T {
	t.Helper()
	var value T
	require.NoError(t, db.QueryRow(t.Context(), sql, args...).Scan(&value))
	return value
}

// Stale inserts n jobs whose leases expired, one second apart.
func Stale(t testing.TB, db Execer, kind string, n, attempts, maxAttempts int) {
	t.Helper()
	Exec(t, db, `insert into job_queue (job_kind, state, attempts, max_attempts, lease_owner, lease_until)
		select $1, 'leased', $2, $3, 'worker-' || i, now() - make_interval(secs => i)
		from generate_series(1, $4::int) i`, kind, attempts, maxAttempts, n)
}

// States counts the queue's rows by state.
func States(t testing.TB, db Execer) map[string]int {
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

// Fingerprint returns the content, the version and the lock of every row of the tables.
func Fingerprint(t testing.TB, db Execer) string {
	t.Helper()
	return One[string](t, db, `select concat_ws('|',
		(select md5(string_agg(q::text || q.xmin || q.xmax || q.ctid, ',' order by q.job_id)) from job_queue q),
		(select md5(string_agg(d::text || d.xmin || d.ctid, ',' order by d.dead_letter_id)) from job_dead_letter d),
		(select md5(string_agg(c::text || c.xmin || c.ctid, ',' order by c.key)) from queue_config c))`)
}

// JSON returns a value as JSON.
func JSON(t testing.TB, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

// WaitForLock returns when a session of this database waits for a lock with a
// statement like the pattern.
func WaitForLock(t testing.TB, db Execer, like string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return One[bool](t, db, `select exists (select from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query like $1)`, like)
	}, Waiting, Tick)
}

// Times for require.Eventually.
const (
	Waiting = 30 * time.Second
	Tick    = time.Millisecond
)

// OpenGate is a gate source for tests that are not about gates.
var OpenGate = gates.Static{SubstrateEnabled: true, ReaperEnabled: true}

// Begin begins a transaction that ends with the test.
func Begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

// DropRole drops a role. Roles belong to the server, so they outlive the database.
func DropRole(t *testing.T, pool *pgxpool.Pool, role string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_, err := pool.Exec(ctx, `drop owned by `+role)
	require.NoError(t, err)
	_, err = pool.Exec(ctx, `drop role `+role)
	require.NoError(t, err)
}

// WithSettings returns another pool on the database, whose sessions have the settings.
func WithSettings(t *testing.T, pool *pgxpool.Pool, settings map[string]string) *pgxpool.Pool {
	t.Helper()
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) {
		for name, value := range settings {
			c.ConnConfig.RuntimeParams[name] = value
		}
	})
}

// Contents returns the content and the version of every row of the tables. It ignores row
// locks.
func Contents(t *testing.T, db Execer) string {
	t.Helper()
	return One[string](t, db, `select concat_ws('|',
		(select string_agg(q::text || q.xmin || q.ctid, E'\n' order by q.job_id) from job_queue q),
		(select string_agg(d::text || d.xmin || d.ctid, E'\n' order by d.dead_letter_id) from job_dead_letter d),
		(select string_agg(c::text || c.xmin || c.ctid, E'\n' order by c.key) from queue_config c))`)
}

// Movers has the library's movers.
var Movers = map[string]deadletter.Mover{
	"with the table":    deadletter.Table{},
	"with the function": deadletter.Function{},
}

// Verify returns the report of a Reaper with a configuration.
func Verify(t *testing.T, pool *pgxpool.Pool, cfg reaper.Config) *reaper.Report {
	t.Helper()
	report, err := New(t, pool, cfg).Verify(t.Context())
	require.NoError(t, err)
	return report
}

// NoHook is an OnApply that does nothing. With it the commit is not sent with the writes.
func NoHook(context.Context, pgx.Tx, *reaper.ApplyResult) error { return nil }

// OnlyProblem returns the problem of a report that must have exactly one.
func OnlyProblem(t *testing.T, pool *pgxpool.Pool, cfg reaper.Config) reaper.Problem {
	t.Helper()
	report := Verify(t, pool, cfg)
	require.Len(t, report.Problems, 1, report)
	require.NotEmpty(t, report.Problems[0].Message)
	require.NotEmpty(t, report.Problems[0].Severity)
	return report.Problems[0]
}

// Refill replaces the jobs by three that an apply resets and two that it moves.
func Refill(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	Exec(t, pool, `truncate job_queue, job_dead_letter`)
	Stale(t, pool, "retryable", 3, 0, 5)
	Stale(t, pool, "exhausted", 2, 4, 5)
}

// WaitForNoTransaction returns when no other backend is in a transaction, so that the
// server has noticed lost connections.
func WaitForNoTransaction(t *testing.T, db Execer) {
	t.Helper()
	require.Eventually(t, func() bool {
		return One[int](t, db, `select count(*)::int from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid()
				and backend_type = 'client backend' and state <> 'idle'`) == 0
	}, Waiting, Tick)
}
