package isolate

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Statements around the writes of a group. The first savepoint is set in a round trip
// before the writes, since a statement that cannot be prepared aborts the transaction too.
// The next group releases the savepoint and sets it again, so that there is only one. The
// end of the transaction releases the last one.
const (
	sqlSavepoint = "savepoint lease_reaper"
	sqlRelease   = "release savepoint lease_reaper"
	sqlUndo      = "rollback to savepoint lease_reaper"

	sqlLeastLockTimeout = "set local lock_timeout = 1"

	// sqlConstraints checks deferred constraints while the group can still be rolled
	// back, not at the commit. sqlDeferAgain rolls the setting back, so that they are
	// deferred again for later statements.
	sqlCheckpoint  = "savepoint lease_reaper_constraints"
	sqlConstraints = "set constraints all immediate"
	sqlDeferAgain  = "rollback to savepoint lease_reaper_constraints"
)

// try writes a group. If items are rejected, it rolls the group back and returns the
// cause. err is an error that ends the transaction.
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

// undo rolls a group back, and reports whether that succeeded.
func (w *Writer[T]) undo(ctx context.Context, cause error) bool {
	var unsent pgx.ErrPreprocessingBatch
	if w.dirty && errors.As(cause, &unsent) {
		return false // the savepoint is still that of the previous group
	}
	w.dirty = false
	undo := sqlUndo
	w.LockTimedOut = w.LockTimedOut || pgtx.Code(cause) == pgtx.CodeLockNotAvailable
	if w.LockTimedOut && w.ShortLockTimeout != "" {
		undo += "; " + w.ShortLockTimeout // the rollback has also undone this setting
	}
	_, err := w.Tx.Exec(ctx, undo, pgx.QueryExecModeSimpleProtocol)
	return err == nil
}

// probeLocks finds out whether only row locks cause a lock timeout. If so, it keeps its
// own locks on the tables until the transaction ends, so that no other session can lock a
// table against the writes.
func (w *Writer[T]) probeLocks(ctx context.Context, cause error) error {
	if pgtx.Code(cause) != pgtx.CodeLockNotAvailable || w.LockProbe == "" {
		return nil
	}
	_, err := w.Tx.Exec(ctx, w.LockProbe+"; "+sqlRelease+"; "+sqlSavepoint, pgx.QueryExecModeSimpleProtocol)
	if err != nil && (ctx.Err() != nil || !w.undo(ctx, err)) {
		return err
	}
	w.rowLocks = pgtx.Code(err) != pgtx.CodeLockNotAvailable
	if w.rowLocks && w.ShortLockTimeout != "" { // most rows are locked, and each may time out twice
		w.ShortLockTimeout = sqlLeastLockTimeout
	}
	return nil
}

// send writes a group in one round trip, and then calls the function that Queue returned.
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
