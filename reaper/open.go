package reaper

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/gates"
)

// opening is how an attempt begins: a transaction that has read the gates, and,
// if they are open, the jobs that it claimed.
type opening struct {
	tx     *transaction
	reason string // why it is refused
	*harvest
}

// open begins an attempt. On an error there is no transaction left.
func (r *Reaper) open(ctx context.Context, o order) (opening, error) {
	source, queues := pipelined(r.cfg.Gates)
	if !r.connects() || !queues || r.cfg.MaxStale > 0 && o.plan == nil {
		return r.openStepwise(ctx, o)
	}
	op, err := r.openAtOnce(ctx, source, o)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && isError(pgErr) {
		// The server's no may be to the claim, which a closed gate would have
		// kept from being made. Step by step it is said which it is.
		return r.openStepwise(ctx, o)
	}
	return op, err
}

// pipelined returns a source of the library's own whose reading can travel with
// other statements. Another type may have got its Queue by embedding one of them,
// and would be asked past its own Read.
func pipelined(source gates.Source) (gates.Pipeliner, bool) {
	switch source := source.(type) {
	case gates.Table:
		return source, true
	case gates.CurrentSetting:
		return source, true
	case gates.Static:
		return source, true
	}
	return nil, false
}

// connects reports whether an attempt can have a connection for itself. Then it
// begins, reads its gates and claims in one exchange, and a commit may travel
// with its last writes. A type that embeds a pool may begin in its own way.
func (r *Reaper) connects() bool {
	switch r.db.(type) {
	case *pgxpool.Pool, *pgx.Conn:
		return true
	}
	return false
}

// connect returns a connection and what gives it back, and no connection where
// there is none to be had.
func (r *Reaper) connect(ctx context.Context) (*pgx.Conn, func(), error) {
	switch db := r.db.(type) {
	case *pgx.Conn:
		return db, nil, nil
	case *pgxpool.Pool:
		conn, err := db.Acquire(ctx)
		if err != nil {
			return nil, nil, err
		}
		return conn.Conn(), conn.Release, nil
	}
	return nil, nil, nil
}

// beginAlone begins a transaction, on a connection of its own if that can be had.
func (r *Reaper) beginAlone(ctx context.Context) (*transaction, error) {
	if !r.connects() {
		tx, err := r.beginTx(ctx, readCommitted)
		return &transaction{Tx: tx}, err
	}
	conn, release, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, readCommitted)
	if err != nil && release != nil {
		release()
	}
	return &transaction{Tx: tx, release: release}, err
}

// openAtOnce begins, reads the gates and claims in one exchange. So a closed gate
// is met with jobs locked already, and lets them go; after that the gates are
// asked alone, without a lock, until they are open.
func (r *Reaper) openAtOnce(ctx context.Context, source gates.Pipeliner, o order) (opening, error) {
	conn, release, err := r.connect(ctx)
	if err != nil {
		return opening{}, fmt.Errorf("reaper: begin: %w", err)
	}
	refused, found := r.refused.Load(), &harvest{}
	batch := &pgx.Batch{}
	batch.BeginTx(readCommitted)
	values := source.Queue(batch, gates.Keys(), !refused)
	if !refused {
		r.queueClaim(batch, o, found)
	}
	results := conn.SendBatch(ctx, batch)
	op := opening{tx: &transaction{Tx: results.Tx(), release: release}, harvest: found}
	err = results.Close()
	if err == nil {
		err = r.enter(ctx, &op, values)
	}
	if err != nil {
		op.tx.end(ctx)
		return opening{}, fmt.Errorf("reaper: open: %w", err)
	}
	if refused && op.reason == "" { // open again: now with the fence
		return r.continueStepwise(ctx, op.tx, o)
	}
	return op, nil
}

// enter judges the gates and decides what is due to each job.
func (r *Reaper) enter(ctx context.Context, op *opening, read func() (gates.Values, error)) error {
	values, err := read()
	if err == nil {
		values, err = r.dated(ctx, op.tx.Tx, values)
	}
	if err != nil {
		return err
	}
	baseSec, reason, err := judge(values)
	if err != nil {
		return err
	}
	if op.reason = reason; reason != "" {
		return nil
	}
	return r.decideAll(op.harvest, baseSec)
}

// openStepwise begins, reads the gates and claims one after the other.
func (r *Reaper) openStepwise(ctx context.Context, o order) (opening, error) {
	tx, err := r.beginAlone(ctx)
	if err != nil {
		return opening{}, fmt.Errorf("reaper: begin: %w", err)
	}
	return r.continueStepwise(ctx, tx, o)
}

// continueStepwise reads the gates and claims in a transaction.
func (r *Reaper) continueStepwise(ctx context.Context, tx *transaction, o order) (op opening, err error) {
	defer func() {
		if err != nil {
			tx.end(ctx)
		}
	}()
	baseSec, reason, err := r.ask(ctx, tx.Tx, o)
	if err != nil || reason != "" {
		return opening{tx: tx, reason: reason}, err
	}
	found, err := r.claim(ctx, tx.Tx, o, baseSec)
	return opening{tx: tx, harvest: found}, err
}
