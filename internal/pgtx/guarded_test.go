package pgtx_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// A guard that fails must keep every write from being made, and cost no connection. A read
// must not wait for what the guard waits for.
func TestAGuardStandsBeforeEveryTransactionThatMayWrite(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.New(t), func(c *pgxpool.Config) { c.MaxConns = 1 })
	guarded := &pgtx.Guarded{Pool: pool, Queue: func(b *pgx.Batch) { b.Queue(`select 1 / 0`) }}
	open := func(ctx context.Context) error {
		tx, err := pgtx.Open(ctx, guarded)
		require.NoError(t, err)
		defer tx.Close(ctx)
		tx.Setting(settle)
		batch := tx.Batch()
		batch.Queue(`insert into job_queue (job_kind) values ('kind')`)
		_, err = tx.SendAndCommit(ctx, batch)
		return err
	}
	require.True(t, pgtx.HasConn(guarded))
	require.False(t, pgtx.IsNested(guarded))
	for range 2 {
		_, err := guarded.Begin(t.Context())
		require.Equal(t, "22012", pgtx.Code(err))
		require.Equal(t, "22012", pgtx.Code(open(t.Context())))
	}

	tx, err := pgtx.Start(t.Context(), guarded, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	require.NoError(t, err)
	require.Zero(t, reapertest.One[int](t, tx, `select count(*)::int from job_queue`))
	tx.Close(t.Context())
}
