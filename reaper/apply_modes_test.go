package reaper_test

import (
	"cmp"
	"context"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

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
			admin := reapertest.WithOracle(t, reapertest.OpenQueue(t))
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
				reapertest.ReapAlike(t, pool, mover)
			}
		})
	}
}

// Under a stricter level than it asks for, an apply would fail whenever a worker
// was faster, and a dry run on a standby altogether. A view shows the level as
// each job's kind.
func TestTheIsolationLevelIsAskedFor(t *testing.T) {
	t.Parallel()
	admin := reapertest.OpenQueue(t)
	reapertest.Stale(t, admin, "kind", 2, 0, 5)
	reapertest.Exec(t, admin, `alter table job_queue rename to jobs;
		create view job_queue as select job_id, current_setting('transaction_isolation') as job_kind, state, attempts,
			max_attempts, scheduled_at, lease_owner, lease_until, last_error from jobs`)
	pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	})

	for _, cfg := range []reaper.Config{{}, {MaxStale: 100}} { // at once, and step by step
		r := reapertest.New(t, pool, cfg)
		dryRun, err := r.DryRun(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, "read committed", dryRun.Jobs[0].JobKind)
		require.Equal(t, "read committed", reapertest.Apply(t, r, 1).Actions[0].JobKind)
	}
}

// A single connection is a DB too, and stays usable.
func TestAConnectionIsADB(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the test is over

	require.Len(t, reapertest.Apply(t, reapertest.New(t, conn, reaper.Config{}), 1).Actions, 1)
	require.Equal(t, byte('I'), conn.PgConn().TxStatus())
}

// In a caller's transaction the caller has the last word.
func TestACallersRollbackUndoesTheApply(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 2, 4, 5)
	tx := reapertest.Begin(t, pool)

	require.Equal(t, 2, reapertest.Apply(t, reapertest.New(t, tx, reaper.Config{}), 10).DeadLetterCount)
	require.NoError(t, tx.Rollback(t.Context()))

	require.Zero(t, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter`))
	require.Equal(t, map[string]int{"leased": 2}, reapertest.States(t, pool))
}

// onlyBegin is a DB that hides pgx's BeginTx, as a wrapper of the user's may.
type onlyBegin struct{ reaper.DB }

// A wrapper gets the isolation level of its database, and must still be served.
func TestADBWithBeginAloneIsEnough(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	r := reapertest.New(t, onlyBegin{pool}, reaper.Config{})

	dryRun, err := r.DryRun(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, dryRun.Jobs, 1)
	require.Len(t, reapertest.Apply(t, r, 10).Actions, 1)
}
