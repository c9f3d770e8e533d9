package reaper_test

import (
	"context"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// cancelAt is a tracer that ends a context when the n-th statement is sent, or
// when it has been answered.
type cancelAt struct {
	n        int
	answered bool
	cancel   context.CancelFunc
	count    int
}

func (c *cancelAt) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.count++
	c.strike(false)
	return ctx
}

func (c *cancelAt) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { c.strike(true) }

func (c *cancelAt) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return c.TraceQueryStart(ctx, nil, pgx.TraceQueryStartData{})
}

func (c *cancelAt) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (c *cancelAt) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) { c.strike(true) }

func (c *cancelAt) strike(answered bool) {
	if c.cancel != nil && c.count == c.n && c.answered == answered {
		c.cancel()
	}
}

// A service that is shut down in the middle of an apply must not leave a
// transaction open, a connection lost to the pool, or half a batch.
func TestAContextCancelledAnywhereLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		onApply func(context.Context, pgx.Tx, *reaper.ApplyResult) error
		points  int
	}{
		"the commit travels with the writes": {nil, 2},
		"the commit comes after a hook":      {reapertest.NoHook, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cancelAnywhere(t, reaper.Config{OnApply: test.onApply}, test.points)
		})
	}
}

// cancelAnywhere ends the context before and after each exchange of an apply, of
// which there are as many as points.
func cancelAnywhere(t *testing.T, cfg reaper.Config, points int) {
	t.Helper()
	admin := reapertest.OpenQueue(t)
	tracer := &cancelAt{}
	pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ConnConfig.Tracer = tracer
	})
	r := reapertest.New(t, pool, cfg)

	require.Equal(t, points, statementsOf(t, admin, pool, tracer, r))
	for n := 1; n <= points; n++ {
		for _, answered := range []bool{false, true} {
			reapertest.Refill(t, admin)
			ctx, cancel := context.WithCancel(t.Context())
			*tracer = cancelAt{n: n, answered: answered, cancel: cancel}

			_, err := r.Apply(ctx, reapertest.Actor, 10)

			cancel()
			*tracer = cancelAt{}
			counts := reapertest.States(t, admin)
			done := counts["leased"] == 0
			switch {
			case err == nil:
				require.True(t, done)
			case done || counts["leased"] != 5:
				require.ErrorIs(t, err, reaper.ErrOutcomeUnknown, "statement %d: %v", n, counts)
				require.True(t, done)
			}
			require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, reapertest.Waiting, reapertest.Tick)
			reapertest.Exec(t, pool, `select 1`)
			require.Eventually(t, func() bool {
				return reapertest.One[int](t, admin, `select count(*)::int from pg_stat_activity
					where datname = current_database() and state like 'idle in transaction%'`) == 0
			}, reapertest.Waiting, reapertest.Tick)
		}
	}
}

// statementsOf counts the statements and batches of an apply that goes well.
func statementsOf(t *testing.T, admin, pool *pgxpool.Pool, tracer *cancelAt, r *reaper.Reaper) int {
	t.Helper()
	reapertest.Refill(t, admin)
	reapertest.Apply(t, r, 10)
	reapertest.Exec(t, pool, `select 1`) // the statements are prepared now
	reapertest.Refill(t, admin)
	*tracer = cancelAt{}
	reapertest.Apply(t, r, 10)
	return tracer.count
}

// A context that has ended before the call is the caller's error, not a panic or
// a refusal.
func TestAnEndedContextIsAnError(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := reapertest.New(t, pool, reaper.Config{})

	_, err := r.Apply(ctx, reapertest.Actor, 10)
	require.ErrorIs(t, err, context.Canceled)
	_, err = r.DryRun(ctx, 10)
	require.ErrorIs(t, err, context.Canceled)
}

// The apply's context ends while the caller's transaction goes on under another:
// what the apply has written by then must not be committed with the caller's.
func TestAContextThatEndsInACallersTransactionUndoesTheApply(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "retryable", 2, 0, 5)
	reapertest.Stale(t, pool, "exhausted", 2, 4, 5)
	tx := reapertest.Begin(t, pool)
	ctx, cancel := context.WithCancel(t.Context())
	r := reapertest.New(t, tx, reaper.Config{OnApply: func(context.Context, pgx.Tx, *reaper.ApplyResult) error {
		cancel()
		return nil
	}})

	_, err := r.Apply(ctx, reapertest.Actor, 10)

	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, map[string]int{"leased": 4}, reapertest.States(t, pool))
	require.Zero(t, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter`))
}
