package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// cleanUpTimeout bounds a rollback, which must happen also when the caller's
// context has ended.
const cleanUpTimeout = 5 * time.Second

// txBeginner is what pools and connections have beyond DB.
type txBeginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// transaction is an attempt's, with the connection that it holds for itself.
type transaction struct {
	pgx.Tx
	release func() // nil: the end of Tx gives the connection back
	over    bool
}

// end rolls back what was not committed, and gives the connection back.
func (t *transaction) end(ctx context.Context) {
	if !t.over {
		t.over = true
		rollback(ctx, t.Tx)
	}
	if t.release != nil {
		t.release()
		t.release = nil
	}
}

// readCommitted is asked for, whatever the database's default is: a stricter level
// would fail where another reaper or a worker was faster, and a standby refuses
// serializable.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// beginReadOnly begins a transaction that cannot write.
func (r *Reaper) beginReadOnly(ctx context.Context) (pgx.Tx, error) {
	options := readCommitted
	options.AccessMode = pgx.ReadOnly
	tx, err := r.beginTx(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("reaper: begin: %w", err)
	}
	return tx, nil
}

func (r *Reaper) beginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	if db, ok := r.db.(txBeginner); ok {
		return db.BeginTx(ctx, options)
	}
	return r.db.Begin(ctx)
}

// rollback ends a transaction that was not committed, also when ctx has ended.
// It is harmless after a commit.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	_ = tx.Rollback(ctx) // a failed rollback closes the connection, and the server rolls back
}

// commit ends the transaction, or the savepoint in the caller's.
func (r *Reaper) commit(ctx context.Context, tx *transaction) error {
	err := r.tryCommit(ctx, tx)
	switch {
	case err == nil:
		tx.over = true
		return nil
	case r.nested || surelyFailed(err):
		return fmt.Errorf("reaper: commit: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

// tryCommit commits, unless that could only fail. A savepoint whose release failed
// is closed for pgx, and would not be rolled back to: what was written would stay
// in the caller's transaction. So it is not released when there is an error
// already, and no end of ctx stops it halfway.
func (r *Reaper) tryCommit(ctx context.Context, tx *transaction) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	if tx.Conn().PgConn().TxStatus() == 'E' {
		return errTxFailed
	}
	if r.nested {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
		defer cancel()
	}
	return tx.Commit(ctx)
}

// errNotSent is the error of a commit whose context had ended before.
var errNotSent = errors.New("not sent")

// errTxFailed is the error of a commit in a transaction whose error the caller's
// code did not tell of.
var errTxFailed = errors.New("the transaction has failed before, and the error was swallowed")

// surelyFailed tells a commit that did not happen from one that may have. A
// FATAL error proves nothing: a backend that is ended just after its commit
// reports one too.
func surelyFailed(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return isError(pgErr)
	}
	var unsent pgx.ErrPreprocessingBatch // it failed in preparing the statements
	return errors.As(err, &unsent) || errors.Is(err, pgx.ErrTxCommitRollback) ||
		errors.Is(err, errTxFailed) || errors.Is(err, errNotSent) || pgconn.SafeToRetry(err)
}

// isError tells an error that leaves the connection usable from a FATAL one. The
// untranslated severity is there since PostgreSQL 9.6.
func isError(err *pgconn.PgError) bool { return err.SeverityUnlocalized == "ERROR" }
