package pgtx_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// settle queues the settings of a transaction.
func settle(batch *pgx.Batch) {
	batch.Queue(`select set_config('lock_timeout', '50ms', true)`)
}

// To prepare a statement the server locks its table. If the settings were not set before,
// an apply would wait for as long as a migration locks the table.
func TestTheSettingsHoldBeforeAnythingIsPrepared(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		mode pgx.QueryExecMode
		// apart reports for each of three transactions with the same statement whether the
		// settings are sent before it, in a round trip of their own.
		apart []bool
	}{
		"statements are cached":    {pgx.QueryExecModeCacheStatement, []bool{true, false, false}},
		"descriptions are cached":  {pgx.QueryExecModeCacheDescribe, []bool{true, false, false}},
		"each is described":        {pgx.QueryExecModeDescribeExec, []bool{true, true, true}},
		"nothing is prepared":      {pgx.QueryExecModeExec, []bool{false, false, false}},
		"with the simple protocol": {pgx.QueryExecModeSimpleProtocol, []bool{false, false, false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			one, trips := reapertest.CountRoundTrips(t, pool, func(c *pgxpool.Config) {
				c.ConnConfig.DefaultQueryExecMode = test.mode
			})
			reapertest.Exec(t, one, `select`)
			count := func(ctx context.Context) error {
				tx, err := pgtx.Open(ctx, one)
				require.NoError(t, err)
				defer tx.Close(ctx)
				tx.Setting(settle)
				batch := tx.Batch()
				batch.Queue(`select count(*) from job_queue`)
				return tx.Send(ctx, batch)
			}
			locked := reapertest.Begin(t, pool)
			reapertest.Exec(t, locked, `lock table job_queue`)
			reapertest.RequireLockTimeout(t, name, count)
			require.NoError(t, locked.Rollback(t.Context()))

			for _, apart := range test.apart {
				n := trips.Of(func() { require.NoError(t, count(t.Context())) }) - 1 // the rollback
				require.Equal(t, apart, n > 1, n)
			}
		})
	}
}

// A commit that is sent with the writes must not happen if one of them fails, and the
// caller must know which of the two failed.
func TestTheCommitTravelsWithTheBatch(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		sql      string
		code     string
		atCommit bool
	}{
		"all is well":           {`insert into things values (1)`, "", true},
		"a write fails":         {`insert into things values (0)`, "23514", false},
		"a constraint waits":    {`insert into things values (7)`, "23505", true},
		"it cannot be prepared": {`insert into missing values (1)`, "42P01", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Empty(t)
			reapertest.Exec(t, pool, `create table things (n int unique deferrable initially deferred check (n > 0));
				insert into things values (7)`)
			tx, err := pgtx.Open(t.Context(), pool)
			require.NoError(t, err)
			batch := tx.Batch()
			batch.Queue(test.sql)

			atCommit, err := tx.SendAndCommit(t.Context(), batch)

			require.Equal(t, test.code, pgtx.Code(err))
			require.Equal(t, test.code == "", tx.Committed())
			require.Equal(t, test.atCommit, atCommit)
			require.True(t, err == nil || pgtx.NotCommitted(err))
			tx.Close(t.Context())
			require.Zero(t, pool.Stat().AcquiredConns())
			rows := map[bool]int{true: 2, false: 1}[test.code == ""]
			require.Equal(t, rows, reapertest.One[int](t, pool, `select count(*)::int from things`))
		})
	}
}

// A rollback inside the caller's transaction must not undo the caller's own work and
// settings. A commit there must be undone when the caller rolls back.
func TestACallersTransactionIsASavepoint(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	reapertest.Exec(t, pool, `create table things (n int)`)
	callers := reapertest.Begin(t, pool)
	reapertest.Exec(t, callers, `insert into things values (1)`)
	require.True(t, pgtx.IsNested(callers))
	require.False(t, pgtx.IsNested(pool))
	require.False(t, pgtx.HasConn(callers))
	require.True(t, pgtx.HasConn(pool))

	write := func(sql string) (*pgtx.Tx, error) {
		tx, err := pgtx.Open(t.Context(), callers)
		require.NoError(t, err)
		tx.Setting(settle)
		batch := tx.Batch()
		require.Zero(t, batch.Len(), "no settings of its own")
		batch.Queue(sql)
		err = tx.Send(t.Context(), batch)
		return tx, err
	}
	tx, err := write(`insert into things values (2)`)
	require.NoError(t, err)
	tx.Close(t.Context())
	tx, err = write(`insert into missing values (2)`)
	require.Equal(t, "42P01", pgtx.Code(err))
	require.True(t, pgtx.NotCommitted(tx.Commit(t.Context())), "it is aborted")
	tx.Close(t.Context())
	tx, err = write(`insert into things values (3)`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	tx.Close(t.Context())

	require.Equal(t, "{1,3}", reapertest.One[string](t, callers, `select array_agg(n order by n)::text from things`))
	require.NoError(t, callers.Rollback(t.Context()))
	require.Zero(t, reapertest.One[int](t, pool, `select count(*)::int from things`))
}

// If the context ends before the commit, nothing must be committed, and the outcome must
// be known.
func TestACommitWhoseContextHasEndedIsNotSent(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	reapertest.Exec(t, pool, `create table things (n int)`)
	ctx, cancel := context.WithCancel(t.Context())
	tx, err := pgtx.Open(ctx, pool)
	require.NoError(t, err)
	batch := tx.Batch()
	batch.Queue(`insert into things values (1)`)
	require.NoError(t, tx.Send(ctx, batch))

	cancel()

	for _, commit := range []func() error{
		func() error { return tx.Commit(ctx) },
		func() error { _, err := tx.SendAndCommit(ctx, tx.Batch()); return err },
	} {
		err := commit()
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, pgtx.NotCommitted(err))
		require.False(t, tx.Committed())
	}
	tx.Close(ctx)
	require.Zero(t, reapertest.One[int](t, pool, `select count(*)::int from things`))
	require.Zero(t, pool.Stat().AcquiredConns())
}

// A lock_timeout of 0 waits for ever, and one that is too large is an error.
func TestALockTimeoutIsWholeMilliseconds(t *testing.T) {
	t.Parallel()

	table := map[time.Duration]string{
		0: "1", 1: "1", time.Millisecond: "1", time.Millisecond + 1: "2", time.Second: "1000", math.MaxInt64: "2147483647",
	}
	for timeout, want := range table {
		require.Equal(t, want, pgtx.LockTimeoutMillis(timeout), timeout)
	}
}
