package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
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

// maxConflicts is how often a transaction is begun again after a conflict.
const maxConflicts = 5

// cleanUpTimeout bounds a rollback, which must happen also when the caller's
// context has ended.
const cleanUpTimeout = 5 * time.Second

// txBeginner is what pools and connections have beyond DB.
type txBeginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// begin asks for read committed, whatever the database's default is: a stricter
// level would fail where a worker or another caller was faster.
func begin(ctx context.Context, db DB, mode pgx.TxAccessMode) (pgx.Tx, error) {
	if db, ok := db.(txBeginner); ok {
		return db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: mode})
	}
	return db.Begin(ctx)
}

// isNested reports whether db is a transaction of the caller's.
func isNested(db DB) bool {
	_, nested := db.(pgx.Tx)
	return nested
}

// transact runs work in a transaction and commits it. After a conflict it begins
// again, unless the transaction is the caller's; so work starts from nothing each
// time.
func transact(ctx context.Context, db DB, work func(tx pgx.Tx) error) error {
	for n := 0; ; n++ {
		err := attempt(ctx, db, work)
		if n == maxConflicts || isNested(db) || ctx.Err() != nil || !isConflict(err) {
			return err
		}
	}
}

func attempt(ctx context.Context, db DB, work func(tx pgx.Tx) error) error {
	tx, err := begin(ctx, db, "")
	if err != nil {
		return explain("begin", err)
	}
	defer rollback(ctx, tx)
	if err := work(tx); err != nil {
		return err
	}
	return commit(ctx, tx, isNested(db))
}

// rollback ends a transaction that was not committed, also when ctx has ended.
// It is harmless after a commit.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	_ = tx.Rollback(ctx) // a failed rollback closes the connection, and the server rolls back
}

// commit ends the transaction, or the savepoint in the caller's.
func commit(ctx context.Context, tx pgx.Tx, nested bool) error {
	err := tryCommit(ctx, tx, nested)
	switch {
	case err == nil:
		return nil
	case nested || surelyFailed(err):
		return explain("commit", err)
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

// errNotSent is the error of a commit whose context had ended before.
var errNotSent = errors.New("not sent")

// tryCommit commits, unless the context has ended. A savepoint whose release
// failed is closed for pgx and would not be rolled back to, so no end of ctx stops
// a release halfway.
func tryCommit(ctx context.Context, tx pgx.Tx, nested bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	if nested {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
		defer cancel()
	}
	return tx.Commit(ctx)
}

// surelyFailed tells a commit that did not happen from one that may have. A
// FATAL error proves nothing: a backend that is ended just after its commit
// reports one too.
func surelyFailed(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return isError(pgErr)
	}
	return errors.Is(err, pgx.ErrTxCommitRollback) || errors.Is(err, errNotSent) || pgconn.SafeToRetry(err)
}
