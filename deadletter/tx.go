package deadletter

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// DB begins transactions: a pool, a connection, or a transaction of the
// caller's, in which everything then happens inside a savepoint.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

var (
	_ DB = (*pgxpool.Pool)(nil)
	_ DB = (*pgx.Conn)(nil)
	_ DB = (pgx.Tx)(nil)
)

// transact runs work in a transaction and commits it. After a conflict it begins
// again, unless the transaction is the caller's; so work starts from nothing each
// time.
func (t target) transact(ctx context.Context, work func(tx pgx.Tx) error) error {
	for n := 0; ; n++ {
		err := t.attempt(ctx, work)
		if n == pgtx.MaxConflicts || t.nested || ctx.Err() != nil || !pgtx.IsConflict(err) {
			return err
		}
	}
}

// attempt sends BEGIN and the bound of the waits for locks before all else: pgx
// prepares a statement before it sends it, and to prepare one the server waits for a
// lock on its tables.
func (t target) attempt(ctx context.Context, work func(tx pgx.Tx) error) error {
	tx, err := pgtx.Open(ctx, t.db)
	if err != nil {
		return wrap("begin", err)
	}
	defer tx.Close(ctx)
	tx.Setting(t.lockTimeout.queue)
	if err := tx.Send(ctx, tx.Batch()); err != nil {
		return wrap("begin", err)
	}
	if err := work(tx.Tx); err != nil {
		return err
	}
	switch err := tx.Commit(ctx); {
	case err == nil:
		return nil
	case t.nested || pgtx.NotCommitted(err):
		return wrap("commit", err)
	default:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
}

// sqlLockTimeout bounds each wait of the transaction for a lock.
//
//	$1 milliseconds  text
const sqlLockTimeout = `-- deadletter.lock_timeout
select set_config('lock_timeout', $1::text, true)`

// lockTimeout is how long a statement waits for a lock.
type lockTimeout time.Duration

// queue queues what sets the bound.
func (t lockTimeout) queue(b *pgx.Batch) {
	b.Queue(sqlLockTimeout, pgtx.LockTimeoutMillis(time.Duration(t)))
}

// short is SQL that sets the bound once a statement has waited for the whole of it.
func (t lockTimeout) short() string {
	return "set local lock_timeout = " + pgtx.LockTimeoutMillis(time.Duration(t/100))
}
