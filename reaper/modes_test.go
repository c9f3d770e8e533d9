package reaper_test

import (
	"cmp"
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A pool that is set up for PgBouncer, or for a stricter database, must see the
// same reaper.
func TestEverySetUpReapsAlike(t *testing.T) {
	t.Parallel()

	type setUp struct {
		mode   pgx.QueryExecMode
		params map[string]string
		conns  int32
	}
	tests := map[string]setUp{
		"cached statements":           {mode: pgx.QueryExecModeCacheStatement},
		"cached descriptions":         {mode: pgx.QueryExecModeCacheDescribe},
		"described each time":         {mode: pgx.QueryExecModeDescribeExec},
		"types taken from Go":         {mode: pgx.QueryExecModeExec},
		"the simple protocol":         {mode: pgx.QueryExecModeSimpleProtocol},
		"serializable by default":     {params: map[string]string{"default_transaction_isolation": "serializable"}},
		"repeatable read by default":  {params: map[string]string{"default_transaction_isolation": "repeatable read"}},
		"one connection only":         {conns: 1},
		"a far time zone":             {params: map[string]string{"timezone": "Pacific/Kiritimati"}},
		"a time zone with odd offset": {mode: pgx.QueryExecModeSimpleProtocol, params: map[string]string{"timezone": "Africa/Monrovia"}},
		"another date style":          {mode: pgx.QueryExecModeExec, params: map[string]string{"datestyle": "ISO, DMY"}},
		"only generic plans":          {params: map[string]string{"plan_cache_mode": "force_generic_plan"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := withOracle(t, openQueue(t))
			pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) {
				c.ConnConfig.DefaultQueryExecMode = cmp.Or(test.mode, c.ConnConfig.DefaultQueryExecMode)
				for key, value := range test.params {
					c.ConnConfig.RuntimeParams[key] = value
				}
				if test.conns > 0 {
					c.MaxConns = test.conns
				}
			})
			for _, mover := range []deadletter.Mover{deadletter.Table{}, deadletter.Function{}} {
				reapAlike(t, pool, mover)
			}
		})
	}
}

func reapAlike(t *testing.T, pool *pgxpool.Pool, mover deadletter.Mover) {
	t.Helper()
	ctx := t.Context()
	exec(t, pool, `truncate job_queue, job_dead_letter`)
	stale(t, pool, "retryable", 3, 0, 5)
	stale(t, pool, "exhausted", 2, 4, 5)
	exec(t, pool, `insert into job_queue (job_kind, state, lease_until) values
		('old', 'leased', '0044-03-15 12:00:00.000001+00 BC'), ('older', 'leased', '-infinity')`)
	r := newReaper(t, pool, reaper.Config{DeadLetter: mover})

	dryRun, err := r.DryRun(ctx, 100)
	require.NoError(t, err)
	result := apply(t, r, 100)

	require.Len(t, dryRun.Jobs, 7)
	require.Equal(t, "older", dryRun.Jobs[0].JobKind)
	require.Contains(t, toJSON(t, dryRun.Jobs[1]), `"0044-03-15T12:00:00.000001Z BC"`)
	require.Equal(t, 5, result.ResetCount)
	require.Equal(t, 2, result.DeadLetterCount)
	for i, action := range result.Actions {
		require.Equal(t, dryRun.Jobs[i].JobID, action.JobID)
		if action.Action == reaper.ResetToRetryWaiting {
			require.True(t, one[bool](t, pool, `select scheduled_at = $1::timestamptz from job_queue where job_id = $2::uuid`,
				action.ScheduledAt, action.JobID), "the result and the row agree")
		}
	}
	require.Empty(t, apply(t, r, 100).Actions)
}

// Under a stricter level than it asks for, an apply would fail whenever a worker
// was faster, and a dry run on a standby altogether. A view shows the level as
// each job's kind.
func TestTheIsolationLevelIsAskedFor(t *testing.T) {
	t.Parallel()
	admin := openQueue(t)
	stale(t, admin, "kind", 2, 0, 5)
	exec(t, admin, `alter table job_queue rename to jobs;
		create view job_queue as select job_id, current_setting('transaction_isolation') as job_kind, state, attempts,
			max_attempts, scheduled_at, lease_owner, lease_until, last_error from jobs`)
	pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	})

	for _, cfg := range []reaper.Config{{}, {MaxStale: 100}} { // at once, and step by step
		r := newReaper(t, pool, cfg)
		dryRun, err := r.DryRun(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, "read committed", dryRun.Jobs[0].JobKind)
		require.Equal(t, "read committed", apply(t, r, 1).Actions[0].JobKind)
	}
}

// A single connection is a DB too, and stays usable.
func TestAConnectionIsADB(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	stale(t, pool, "kind", 1, 0, 5)
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the test is over

	require.Len(t, apply(t, newReaper(t, conn, reaper.Config{}), 1).Actions, 1)
	require.Equal(t, byte('I'), conn.PgConn().TxStatus())
}

// In a caller's transaction the caller has the last word.
func TestACallersRollbackUndoesTheApply(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	stale(t, pool, "kind", 2, 4, 5)
	tx := begin(t, pool)

	require.Equal(t, 2, apply(t, newReaper(t, tx, reaper.Config{}), 10).DeadLetterCount)
	require.NoError(t, tx.Rollback(t.Context()))

	require.Zero(t, one[int](t, pool, `select count(*)::int from job_dead_letter`))
	require.Equal(t, map[string]int{"leased": 2}, states(t, pool))
}

// onlyBegin is a DB that hides pgx's BeginTx, as a wrapper of the user's may.
type onlyBegin struct{ reaper.DB }

// A wrapper gets the isolation level of its database, and must still be served.
func TestADBWithBeginAloneIsEnough(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	stale(t, pool, "kind", 1, 0, 5)
	r := newReaper(t, onlyBegin{pool}, reaper.Config{})

	dryRun, err := r.DryRun(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, dryRun.Jobs, 1)
	require.Len(t, apply(t, r, 10).Actions, 1)
}
