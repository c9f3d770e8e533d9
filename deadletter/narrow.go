package deadletter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Statements around the writes of a group. The savepoint is released when they
// went through, and also after they were undone, so that savepoints never pile
// up. The undo is one simple query: a failed transaction would not prepare the
// second half of it.
const (
	sqlSavepoint = "savepoint dead_letters"
	sqlRelease   = "release savepoint dead_letters"
	sqlUndo      = "rollback to savepoint dead_letters; release savepoint dead_letters"

	// sqlConstraints makes deferred constraints speak up while the group can
	// still be undone, instead of at the commit. What it sets is undone, so that
	// they are deferred again for the next group.
	sqlCheckpoint  = "savepoint dead_letters_constraints"
	sqlConstraints = "set constraints all immediate"
	sqlDeferAgain  = "rollback to savepoint dead_letters_constraints"
)

// sampleSize is how many items are tried alone before an error is taken for one
// that no row is to blame for.
const sampleSize = 16

// narrower writes items in groups. A group with an item that is turned away is
// undone and halved, until that item stands alone.
type narrower[T any] struct {
	tx     pgx.Tx
	nested bool // the constraints and settings of a caller's transaction are left to the caller

	lockTimeout lockTimeout // that the transaction has
	waited      bool        // for all of it, once

	queue func(b *pgx.Batch, items []T) (missing func(item T) bool) // the writes, and which the server left out
	fail  func(item T, cause error)

	through bool // something went through
}

// write writes the items and reports those that are turned away.
func (n *narrower[T]) write(ctx context.Context, items []T) error {
	if len(items) == 0 {
		return nil
	}
	cause, err := n.probe(ctx, items)
	if cause == nil || err != nil {
		return err
	}
	var away *awayError[T]
	switch {
	case errors.As(cause, &away):
		for _, item := range away.items {
			n.fail(item, cause)
		}
		return n.write(ctx, away.others)
	case mayBlameAll(cause) && !n.through:
		return n.sample(ctx, items, cause)
	case len(items) == 1:
		n.fail(items[0], cause)
		return nil
	}
	return n.writeHalves(ctx, items)
}

func (n *narrower[T]) writeHalves(ctx context.Context, items []T) error {
	half := len(items) / 2
	if err := n.write(ctx, items[:half]); err != nil {
		return err
	}
	return n.write(ctx, items[half:])
}

// probe tries a group. It returns why it was turned away, after undoing it, or an
// error that ends the transaction.
func (n *narrower[T]) probe(ctx context.Context, items []T) (cause, err error) {
	cause = n.try(ctx, items)
	if cause == nil {
		n.through = true
		_, err := n.tx.Exec(ctx, sqlRelease)
		return nil, err
	}
	if !mayBlameRows(ctx, cause) || isConflict(cause) {
		return cause, cause
	}
	if _, err := n.tx.Exec(ctx, sqlUndo); err != nil {
		return cause, cause // the connection is gone
	}
	if isLockTimeout(cause) && !n.nested && !n.waited {
		n.waited = true
		return cause, n.lockTimeout.again().set(ctx, n.tx)
	}
	return cause, nil
}

// try sends the writes of a group in one exchange.
func (n *narrower[T]) try(ctx context.Context, items []T) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlSavepoint)
	missing := n.queue(batch, items)
	if !n.nested {
		batch.Queue(sqlCheckpoint)
		batch.Queue(sqlConstraints)
		batch.Queue(sqlDeferAgain)
	}
	if err := n.tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	return turnedAway(items, missing)
}

// sample tries some of the items alone, to find out whether rows are to blame at
// all. It goes on with the others when one goes through, and returns the cause
// when none does.
func (n *narrower[T]) sample(ctx context.Context, items []T, cause error) error {
	for _, i := range rand.Perm(len(items))[:min(sampleSize, len(items))] {
		alone, err := n.probe(ctx, items[i:i+1])
		if err != nil {
			return err
		}
		if alone == nil {
			return n.write(ctx, slices.Concat(items[:i], items[i+1:]))
		}
	}
	return cause
}

// errKeptBack is a failure's error when a write changed nothing and said nothing.
var errKeptBack = errors.New("the write was turned away without an error, by a trigger or a policy")

// awayError names items that a trigger or a policy turned away.
type awayError[T any] struct{ items, others []T }

func (e *awayError[T]) Error() string { return fmt.Sprintf("%d turned away", len(e.items)) }
func (e *awayError[T]) Unwrap() error { return errKeptBack }

// turnedAway parts the items into those that are missing in what the server wrote,
// and the others.
func turnedAway[T any](items []T, missing func(T) bool) error {
	var away awayError[T]
	for _, item := range items {
		if missing(item) {
			away.items = append(away.items, item)
		} else {
			away.others = append(away.others, item)
		}
	}
	if len(away.items) == 0 {
		return nil
	}
	return &away
}

// mayBlameRows reports whether an error may be due to some of the rows, so that
// the others could be written without them.
func mayBlameRows(ctx context.Context, err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return ctx.Err() == nil && isError(pgErr) && pgErr.Code != readOnly
	}
	return errors.Is(err, errKeptBack)
}

// mayBlameAll reports whether an error is of a class that is mostly due to no row
// at all, but to privileges, missing objects, resources, cancellation. A trigger
// or a policy can raise it for one row all the same, so it is only believed when
// nothing goes through. The classes are from the appendix "PostgreSQL Error Codes"
// of the manual.
func mayBlameAll(err error) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code == lockNotAvailable || isOfValue(pgErr) {
		return false
	}
	return slices.Contains([]string{
		"08", "0A", "25", "26", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "F0", "XX",
	}, class(pgErr.Code))
}

// isOfValue reports whether a name or a syntax that is wrong was a stored value's:
// a tsquery, a regclass. Those of a statement have a position in its text.
func isOfValue(err *pgconn.PgError) bool {
	return (class(err.Code) == "42" || class(err.Code) == "3F") && err.Code != insufficientPrivilege &&
		err.Position == 0 && err.InternalPosition == 0
}
