package isolate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// sampleSize is how many items are tried alone before an error is taken for one
// that concerns all of them.
const sampleSize = 16

// Writer writes items in groups.
type Writer[T comparable] struct {
	Tx pgx.Tx

	// Queue queues the writes of a group. The function it returns is called when
	// they went through; its error may be a [RejectedError].
	Queue func(batch *pgx.Batch, items []T) func(ctx context.Context) error

	// Reject is called for each item that cannot be written.
	Reject func(item T, cause error)

	// Again is asked before an item is rejected alone whether to try it once more,
	// since it was changed. Optional.
	Again func(item T, cause error) bool

	// Ends reports whether an error ends the transaction, since it concerns no item.
	Ends func(err error) bool

	// Blocks reports whether an error is known to concern every item, so that a
	// group is rejected as it is. Optional.
	Blocks func(err error) bool

	// ConcernsAll reports whether an error may concern every item. It is believed
	// when nothing was written yet, and none of a sample can be. Optional:
	// [pgtx.MayConcernAll] unless set.
	ConcernsAll func(err error) bool

	// LockProbe is SQL that writes no row, and takes the locks of the tables as the
	// writes do. When none of a sample could be written because of locks, it tells those
	// of rows from those of the tables, which concern every item. Optional: then they do.
	LockProbe string

	// TimedOutBudget bounds the time that is lost in groups which the server's
	// statement_timeout ends. When it is used up, the batch is too large, and no
	// item is to blame. 0: no bound.
	TimedOutBudget time.Duration

	// Constraints says that deferred constraints are checked for each group: after
	// the writes that Queue has queued or, with WritesLater, after its function.
	Constraints, WritesLater bool

	// ShortLockTimeout is SQL that shortens the waits for locks, after one has
	// failed. Optional.
	ShortLockTimeout string

	// LockTimedOut says that one has failed.
	LockTimedOut bool

	// Blocked is set when a group was rejected as it was: either Blocks said so, or
	// the error may concern all items and none could be written.
	Blocked error

	wrote    bool // some item was written
	rowLocks bool // locks of rows are in the way of those that were tried
	dirty    bool // something was written since the savepoint
	timedOut time.Duration
}

// RejectedError names items that the database, or a mover, left out without an
// error.
type RejectedError[T comparable] struct{ Causes map[T]error }

func (e *RejectedError[T]) Error() string { return fmt.Sprintf("%d items rejected", len(e.Causes)) }

// Write writes the items that can be written and rejects the others. After an
// error the transaction is of no further use.
func (w *Writer[T]) Write(ctx context.Context, items []T) error {
	if len(items) == 0 {
		return nil
	}
	begin := sqlSavepoint
	if w.LockTimedOut && w.ShortLockTimeout != "" {
		begin = w.ShortLockTimeout + "; " + begin
	}
	if _, err := w.Tx.Exec(ctx, begin, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	_, err := w.write(ctx, items)
	return err
}

// write reports whether no item was rejected.
func (w *Writer[T]) write(ctx context.Context, items []T) (clean bool, err error) {
	if len(items) == 0 {
		return true, nil
	}
	cause, err := w.try(ctx, items)
	if cause == nil || err != nil {
		return cause == nil, err
	}
	return false, w.narrow(ctx, items, cause)
}

// narrow writes those items of a rejected group that can be written.
func (w *Writer[T]) narrow(ctx context.Context, items []T, cause error) error {
	var rejected *RejectedError[T]
	switch {
	case errors.As(cause, &rejected):
		rest := w.reject(items, rejected)
		if len(rest) == len(items) {
			return cause // it names none of these items, and would for ever
		}
		_, err := w.write(ctx, rest)
		return err
	case w.Blocks != nil && w.Blocks(cause):
		w.block(items, cause)
		return nil
	case !w.wrote && !w.rowLocks && w.concernsAll(cause):
		return w.sample(ctx, items, cause)
	case len(items) == 1:
		return w.alone(ctx, items, cause)
	}
	return w.halve(ctx, items)
}

func (w *Writer[T]) concernsAll(cause error) bool {
	if w.ConcernsAll != nil {
		return w.ConcernsAll(cause)
	}
	return pgtx.MayConcernAll(cause)
}

// reject rejects the items that an error names, and returns the others.
func (w *Writer[T]) reject(items []T, rejected *RejectedError[T]) []T {
	rest := make([]T, 0, len(items))
	for _, item := range items {
		if cause, ok := rejected.Causes[item]; ok {
			w.Reject(item, cause)
		} else {
			rest = append(rest, item)
		}
	}
	return rest
}

// sample tries some of the items alone, to find out whether items are to blame at
// all. It goes on with the others when one can be written.
func (w *Writer[T]) sample(ctx context.Context, items []T, cause error) error {
	for _, i := range rand.Perm(len(items))[:min(sampleSize, len(items))] {
		alone, err := w.try(ctx, items[i:i+1])
		if err != nil {
			return err
		}
		if alone == nil {
			_, err := w.write(ctx, slices.Concat(items[:i], items[i+1:]))
			return err
		}
	}
	if err := w.probeLocks(ctx, cause); err != nil {
		return err
	}
	if w.rowLocks {
		_, err := w.write(ctx, items) // the table may have been locked until now
		return err
	}
	w.block(items, cause)
	return nil
}

// block rejects all items of a group.
func (w *Writer[T]) block(items []T, cause error) {
	w.Blocked = cause
	for _, item := range items {
		w.Reject(item, cause)
	}
}

// alone rejects an item that was tried alone, unless another try is worth it.
func (w *Writer[T]) alone(ctx context.Context, items []T, cause error) error {
	if w.Again != nil && w.Again(items[0], cause) {
		again, err := w.try(ctx, items)
		if again == nil || err != nil {
			return err
		}
	}
	w.Reject(items[0], cause)
	return nil
}

// halve writes the halves of a group that cannot be written whole. When the first
// half can, the reason is in the second, which is halved untried.
func (w *Writer[T]) halve(ctx context.Context, items []T) error {
	half := len(items) / 2
	clean, err := w.write(ctx, items[:half])
	if err != nil {
		return err
	}
	if rest := items[half:]; clean && len(rest) > 1 {
		return w.halve(ctx, rest)
	}
	_, err = w.write(ctx, items[half:])
	return err
}
