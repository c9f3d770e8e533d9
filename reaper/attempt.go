package reaper

import (
	"context"
	"errors"
)

// maxConflicts is how often an apply is begun again after a deadlock or a
// serialization failure. Each costs the server's deadlock_timeout, a second
// unless set.
const maxConflicts = 5

// care is how carefully an attempt settles its jobs.
type care int

const (
	swift    care = iota // all at once
	careful              // in groups, so that jobs which are turned away stand alone
	thorough             // and deferred constraints are checked for each group
)

// persist makes attempts until one goes through.
func (r *Reaper) persist(ctx context.Context, o order) (*ApplyResult, *harvest, error) {
	for {
		result, found, err := r.attempt(ctx, o)
		if err == nil || !r.again(ctx, &o, err) {
			return result, found, err
		}
	}
}

// again reports whether to make another attempt, and how: after a conflict as
// before, unless the transaction is the caller's, and with more care when rows
// were turned away. A row that conflicts each time is turned away in the end.
func (r *Reaper) again(ctx context.Context, o *order, err error) bool {
	if errors.Is(err, ErrOutcomeUnknown) {
		return false
	}
	if isConflict(err) {
		if r.nested {
			return false
		}
		if o.conflicts < maxConflicts {
			o.conflicts++
			return true
		}
	}
	var settling *settleError
	if !errors.As(err, &settling) || settling.care() <= o.care || !mayBlameRows(ctx, err) {
		return false
	}
	o.care = settling.care()
	return true
}

// care is how careful the next attempt has to be.
func (e *settleError) care() care {
	if e.atCommit {
		return thorough
	}
	return careful
}

// attempt is one transaction of an apply.
func (r *Reaper) attempt(ctx context.Context, o order) (*ApplyResult, *harvest, error) {
	op, err := r.open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	defer op.tx.end(ctx)

	r.refused.Store(op.reason != "")
	if op.reason != "" {
		return refusal(op.reason), nil, nil
	}
	p := &pass{Reaper: r, tx: op.tx, order: o, harvest: op.harvest}
	if len(p.jobs) == 0 { // a commit would wait for the disk, for the gates' locks alone
		return p.result(), p.harvest, nil
	}
	if err := p.settle(ctx); err != nil {
		return nil, nil, &settleError{err: err, atCommit: p.atCommit}
	}
	result := p.result()
	if p.tx.over {
		return result, p.harvest, nil
	}
	if err := r.onApply(ctx, p.tx.Tx, result); err != nil {
		return nil, nil, err
	}
	if err := r.commit(ctx, p.tx); err != nil {
		return nil, nil, &settleError{err: err, atCommit: true}
	}
	return result, p.harvest, nil
}
