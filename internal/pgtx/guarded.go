package pgtx

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Guarded is a pool in which each transaction that may write begins with a statement, which
// fails where nothing may be written. Open sends it after the transaction's settings, with
// the first batch.
type Guarded struct {
	Pool  *pgxpool.Pool
	Queue func(*pgx.Batch) // queues the statement
}

// Begin begins a transaction at read committed, with the statement.
func (g *Guarded) Begin(ctx context.Context) (pgx.Tx, error) { return g.BeginTx(ctx, ReadCommitted) }

// BeginTx begins a transaction, with the statement unless it is a read-only one.
func (g *Guarded) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := g.Pool.BeginTx(ctx, options)
	if err != nil || options.AccessMode == pgx.ReadOnly {
		return tx, err
	}
	batch := &pgx.Batch{}
	g.Queue(batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		Rollback(ctx, tx)
		return nil, err
	}
	return tx, nil
}
