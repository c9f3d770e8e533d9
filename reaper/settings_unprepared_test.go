package reaper_test

import (
	"cmp"
	"context"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// wrappedPool is a service's own type around its pool.
type wrappedPool struct{ *pgxpool.Pool }

// ownSource reads the gates by code of the caller's.
var ownSource = gates.SourceFunc(func(context.Context, pgx.Tx, []string) (gates.Values, error) {
	return reapertest.OpenGate.Read(context.Background(), nil, gates.Keys())
})

// callers are the calls that meet the queue first.
var callers = map[string]func(ctx context.Context, r *reaper.Reaper, plan *reaper.DryRunResult) error{
	"Apply": func(ctx context.Context, r *reaper.Reaper, _ *reaper.DryRunResult) error {
		_, err := r.Apply(ctx, reapertest.Actor, 10)
		return err
	},
	"ApplyPlan": func(ctx context.Context, r *reaper.Reaper, plan *reaper.DryRunResult) error {
		_, err := r.ApplyPlan(ctx, reapertest.Actor, plan)
		return err
	},
	"DryRun": func(ctx context.Context, r *reaper.Reaper, _ *reaper.DryRunResult) error {
		_, err := r.DryRun(ctx, 10)
		return err
	},
	"Rehearse": func(ctx context.Context, r *reaper.Reaper, _ *reaper.DryRunResult) error {
		_, err := r.Rehearse(ctx)
		return err
	},
}

// pgx prepares a statement before it sends the batch that sets lock_timeout, and to
// prepare it the server waits for the table. A connection that a migration meets first
// would wait for as long as the migration lasts.
func TestAConnectionThatHasPreparedNothingWaitsForLockTimeoutAtMost(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		mode     pgx.QueryExecMode
		capacity int // of the statement cache; 0: pgx's own
		wrapped  bool
		cfg      reaper.Config
	}{
		"cached statements":           {mode: pgx.QueryExecModeCacheStatement},
		"cached descriptions":         {mode: pgx.QueryExecModeCacheDescribe},
		"types asked for":             {mode: pgx.QueryExecModeDescribeExec},
		"types from Go":               {mode: pgx.QueryExecModeExec},
		"the simple protocol":         {mode: pgx.QueryExecModeSimpleProtocol},
		"a cache of one statement":    {capacity: 1},
		"a pool in a type of its own": {wrapped: true},
		"a source of the caller's":    {cfg: reaper.Config{Gates: ownSource}},
		"a limit of stale leases":     {cfg: reaper.Config{MaxStale: 100}},
	}
	for name, test := range tests {
		for call, do := range callers {
			t.Run(name+", "+call, func(t *testing.T) {
				t.Parallel()
				admin := reapertest.OpenQueue(t)
				reapertest.Stale(t, admin, "kind", 3, 0, 5)
				plan, err := reapertest.New(t, admin, reaper.Config{}).DryRun(t.Context(), 10)
				require.NoError(t, err)
				pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) {
					c.MaxConns = 1
					c.ConnConfig.DefaultQueryExecMode = cmp.Or(test.mode, c.ConnConfig.DefaultQueryExecMode)
					c.ConnConfig.StatementCacheCapacity = cmp.Or(test.capacity, c.ConnConfig.StatementCacheCapacity)
				})
				cfg := test.cfg
				cfg.LockTimeout = lockTimeout
				r := reapertest.New(t, pool, cfg)
				if test.wrapped {
					r = reapertest.New(t, wrappedPool{pool}, cfg)
				}
				if test.capacity > 0 { // what was prepared is dropped again
					require.NoError(t, do(t.Context(), r, plan))
					reapertest.One[int](t, pool, `select 1`)
				}
				migration := reapertest.Begin(t, admin)
				reapertest.Exec(t, migration, `lock table job_queue in access exclusive mode`)

				reapertest.RequireLockTimeout(t, "", func(ctx context.Context) error { return do(ctx, r, plan) })

				require.NoError(t, migration.Rollback(t.Context()))
				require.NoError(t, do(t.Context(), r, plan))
			})
		}
	}
}

// Two reapers share a pool. What the first has prepared is not what the second needs.
func TestASecondReaperOnAPoolWaitsForLockTimeoutAtMost(t *testing.T) {
	t.Parallel()
	admin := reapertest.OpenQueue(t)
	pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) { c.MaxConns = 1 })
	reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10)
	reapertest.Exec(t, admin, `create table other_queue (like job_queue including all)`)
	second := reapertest.New(t, pool, reaper.Config{
		LockTimeout: lockTimeout, Queue: reaper.Table{Name: pgx.Identifier{"other_queue"}},
	})
	migration := reapertest.Begin(t, admin)
	reapertest.Exec(t, migration, `lock table other_queue in access exclusive mode`)

	reapertest.RequireLockTimeout(t, "", func(ctx context.Context) error {
		_, err := second.Apply(ctx, reapertest.Actor, 10)
		return err
	})
}
