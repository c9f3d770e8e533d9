package isolate

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Statements around the writes of a group. The first savepoint is set in an
// exchange before the writes: a statement that cannot even be prepared aborts the
// transaction too. The next group releases it and sets it anew, so that savepoints
// do not pile up; the last one is left to the end of the transaction.
const (
	sqlSavepoint = "savepoint lease_reaper"
	sqlRelease   = "release savepoint lease_reaper"
	sqlUndo      = "rollback to savepoint lease_reaper"

	sqlLeastLockTimeout = "set local lock_timeout = 1"

	// sqlConstraints makes deferred constraints fail while the group can still be
	// undone, instead of at the commit. The setting is then undone, so that they
	// are deferred again for what comes after the group.
	sqlCheckpoint  = "savepoint lease_reaper_constraints"
	sqlConstraints = "set constraints all immediate"
	sqlDeferAgain  = "rollback to savepoint lease_reaper_constraints"
)

// try writes a group. It returns why items of it were rejected, after undoing the
// group, or an error that ends the transaction.
func (w *Writer[T]) try(ctx context.Context, items []T) (cause, err error) {
	began := time.Now()
	cause = w.send(ctx, items)
	switch {
	case cause == nil:
		w.wrote, w.dirty = true, true
		return nil, nil
	case ctx.Err() != nil || w.Ends(cause):
		return cause, cause
	}
	if pgtx.Code(cause) == pgtx.CodeQueryCanceled {
		w.timedOut += time.Since(began)
	}
	tooLarge := w.TimedOutBudget > 0 && w.timedOut > w.TimedOutBudget && len(items) > 1
	if tooLarge || !w.undo(ctx, cause) {
		return cause, cause
	}
	return cause, nil
}

// undo undoes a group, and reports whether it could.
func (w *Writer[T]) undo(ctx context.Context, cause error) bool {
	var unsent pgx.ErrPreprocessingBatch
	if w.dirty && errors.As(cause, &unsent) {
		return false // the savepoint is that of the group before
	}
	w.dirty = false
	undo := sqlUndo
	w.LockTimedOut = w.LockTimedOut || pgtx.Code(cause) == pgtx.CodeLockNotAvailable
	if w.LockTimedOut && w.ShortLockTimeout != "" {
		undo += "; " + w.ShortLockTimeout // the undo has undone this too
	}
	_, err := w.Tx.Exec(ctx, undo, pgx.QueryExecModeSimpleProtocol)
	return err == nil
}

// probeLocks finds out whether locks of rows alone are in the way, after an item has
// waited for one in vain. Then the tables' locks are kept until the end of the
// transaction, so that nobody else can take one that is in the way.
func (w *Writer[T]) probeLocks(ctx context.Context, cause error) error {
	if pgtx.Code(cause) != pgtx.CodeLockNotAvailable || w.LockProbe == "" {
		return nil
	}
	_, err := w.Tx.Exec(ctx, w.LockProbe+"; "+sqlRelease+"; "+sqlSavepoint, pgx.QueryExecModeSimpleProtocol)
	if err != nil && (ctx.Err() != nil || !w.undo(ctx, err)) {
		return err
	}
	w.rowLocks = pgtx.Code(err) != pgtx.CodeLockNotAvailable
	if w.rowLocks && w.ShortLockTimeout != "" { // most rows are locked, and each is waited for twice
		w.ShortLockTimeout = sqlLeastLockTimeout
	}
	return nil
}

// send writes a group in one exchange, and does what the group needs after it.
func (w *Writer[T]) send(ctx context.Context, items []T) error {
	batch := &pgx.Batch{}
	if w.dirty {
		batch.Queue(sqlRelease)
		batch.Queue(sqlSavepoint)
	}
	finish := w.Queue(batch, items)
	if w.Constraints && !w.WritesLater {
		queueConstraints(batch)
	}
	if err := w.Tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if err := finish(ctx); err != nil || !w.Constraints || !w.WritesLater {
		return err
	}
	batch = &pgx.Batch{}
	queueConstraints(batch)
	return w.Tx.SendBatch(ctx, batch).Close()
}

func queueConstraints(batch *pgx.Batch) {
	batch.Queue(sqlCheckpoint)
	batch.Queue(sqlConstraints)
	batch.Queue(sqlDeferAgain)
}
