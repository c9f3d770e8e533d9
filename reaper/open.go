package reaper

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/gates"
)

// opening is how an attempt begins: a transaction that has read the gates, and,
// if they are open, the jobs that it claimed.
type opening struct {
	tx     pgx.Tx
	reason string // why it is refused
	jobs   []*claimed
}

// batchSender is what pools and connections have beyond DB. With it an apply
// begins, reads its gates and claims in one exchange.
type batchSender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// open begins an attempt. On an error there is no transaction left.
func (r *Reaper) open(ctx context.Context, o order) (opening, error) {
	db, sends := r.db.(batchSender)
	source, queues := r.cfg.Gates.(gates.Pipeliner)
	if !sends || !queues || r.nested || r.cfg.MaxStale > 0 {
		return r.openStepwise(ctx, o)
	}
	op, err := r.openAtOnce(ctx, db, source, o)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && isError(pgErr) {
		// The server's no may be to the claim, which a closed gate would have
		// kept from being made. Step by step it is said which it is.
		return r.openStepwise(ctx, o)
	}
	return op, err
}

// openAtOnce begins, reads the gates and claims in one exchange. So a closed gate
// is met with jobs locked already, and lets them go; after that the gates are
// asked alone, without a lock, until they are open.
func (r *Reaper) openAtOnce(ctx context.Context, db batchSender, source gates.Pipeliner, o order) (opening, error) {
	refused := r.refused.Load()
	var rows []claimRow
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	values := source.Queue(batch, gates.Keys(), !refused)
	if !refused {
		r.queueClaim(batch, o, &rows)
	}
	results := db.SendBatch(ctx, batch)
	op := opening{tx: results.Tx()}
	err := results.Close()
	if err == nil {
		err = r.enter(ctx, &op, values, rows)
	}
	if err != nil {
		rollback(ctx, op.tx)
		return opening{}, fmt.Errorf("reaper: open: %w", err)
	}
	if refused && op.reason == "" { // open again: now with the fence
		return r.continueStepwise(ctx, op.tx, o)
	}
	return op, nil
}

// enter judges the gates and decides what is due to each job.
func (r *Reaper) enter(
	ctx context.Context, op *opening, read func() (gates.Values, error), rows []claimRow,
) error {
	values, err := read()
	if err == nil {
		values, err = r.dated(ctx, op.tx, values)
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
	op.jobs, err = r.decideAll(rows, baseSec)
	return err
}

// openStepwise begins, reads the gates and claims one after the other.
func (r *Reaper) openStepwise(ctx context.Context, o order) (opening, error) {
	tx, err := r.begin(ctx, "")
	if err != nil {
		return opening{}, err
	}
	return r.continueStepwise(ctx, tx, o)
}

// continueStepwise reads the gates and claims in a transaction.
func (r *Reaper) continueStepwise(ctx context.Context, tx pgx.Tx, o order) (op opening, err error) {
	defer func() {
		if err != nil {
			rollback(ctx, tx)
		}
	}()
	baseSec, reason, err := r.ask(ctx, tx)
	if err != nil || reason != "" {
		return opening{tx: tx, reason: reason}, err
	}
	jobs, err := r.claim(ctx, tx, o, baseSec)
	return opening{tx: tx, jobs: jobs}, err
}
