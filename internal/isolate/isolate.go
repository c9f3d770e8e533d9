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

// sampleSize is how many items are tried alone before an error counts as one that
// concerns all items.
const sampleSize = 16

// Writer writes items in groups.
type Writer[T comparable] struct {
	Tx pgx.Tx

	// Queue queues the writes of a group. The function that it returns is called after
	// the writes succeeded. Its error may be a [RejectedError].
	Queue func(batch *pgx.Batch, items []T) func(ctx context.Context) error

	// Reject is called for each item that cannot be written.
	Reject func(item T, cause error)

	// Again is called before a single item is rejected. It may change the item, and
	// reports whether to try it once more. Optional.
	Again func(item T, cause error) bool

	// Ends reports whether an error concerns no item and ends the transaction.
	Ends func(err error) bool

	// Blocks reports whether an error certainly concerns every item, so that the whole
	// group is rejected without bisection. Optional.
	Blocks func(err error) bool

	// ConcernsAll reports whether an error may concern every item. If so, and neither
	// any item so far nor any of a sample can be written, all are rejected. Default:
	// [pgtx.MayConcernAll].
	ConcernsAll func(err error) bool

	// LockProbe is SQL that locks the tables as the writes do, but writes no row. It is
	// run when a lock timeout has rejected a whole sample. If it succeeds, only rows are
	// locked; if it times out, a table is, which concerns every item. Optional: without
	// it, such a timeout concerns every item.
	LockProbe string

	// TimedOutBudget bounds the time spent on groups that the server's statement_timeout
	// ends. Once it is used up, the batch counts as too large: Write returns the error
	// and rejects no further item. 0: no bound.
	TimedOutBudget time.Duration

	// Constraints makes each group check deferred constraints: after the writes that
	// Queue has queued or, with WritesLater, after the function that it returned.
	Constraints, WritesLater bool

	// ShortLockTimeout is SQL that sets a shorter lock_timeout, after a lock timeout.
	// Optional.
	ShortLockTimeout string

	// LockTimedOut reports whether there was a lock timeout.
	LockTimedOut bool

	// Blocked is the error for which a whole group was rejected: Blocks accepted it, or
	// ConcernsAll did and no item could be written.
	Blocked error

	wrote    bool // some item was written
	rowLocks bool // lock timeouts are known to be from row locks
	dirty    bool // something was written since the savepoint
	timedOut time.Duration
}

// RejectedError reports items that the database or a mover skipped without an error.
type RejectedError[T comparable] struct{ Causes map[T]error }

func (e *RejectedError[T]) Error() string { return fmt.Sprintf("%d items rejected", len(e.Causes)) }

// Write writes the items that can be written and rejects the others. After an error the
// transaction must be rolled back.
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

// narrow writes the items of a rejected group that can be written.
func (w *Writer[T]) narrow(ctx context.Context, items []T, cause error) error {
	var rejected *RejectedError[T]
	switch {
	case errors.As(cause, &rejected):
		rest := w.reject(items, rejected)
		if len(rest) == len(items) {
			return cause // it names none of these items, so a retry would not end
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

// sample tries some of the items alone, to find out whether any can be written. If one
// can, it writes the others; if none can, it rejects all.
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
		_, err := w.write(ctx, items) // a table may have been locked until the probe
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

// alone rejects an item that was tried alone, unless Again makes it succeed.
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

// halve writes a rejected group in halves. If the first half is written, the rejected
// item is in the second half, which is halved without a try.
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
