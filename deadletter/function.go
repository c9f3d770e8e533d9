package deadletter

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/letter"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

var _ Mover = Function{}

// Function moves jobs by an existing function of the database. One statement calls it
// once for each job, oldest lease first:
//
//	fn_job_move_to_dead_letter(job_id, actor text, final_error text) returns jsonb
//
// It returns an object. "refused": true leaves the job in the queue, with
// "reason" to say why; every field ends up in the receipt's document. A function
// that returns NULL refuses. The role needs EXECUTE on the function, SELECT on the
// queue's key, and what the function itself needs unless that is SECURITY
// DEFINER.
type Function struct {
	// Name is the function's name, with its schema or on the search path.
	// Empty: fn_job_move_to_dead_letter.
	Name pgx.Identifier
}

// Move calls the function for the whole batch with one statement.
func (f Function) Move(ctx context.Context, tx pgx.Tx, batch Batch) ([]Receipt, error) {
	receipts, err := f.call(ctx, tx, batch)
	if err != nil {
		return nil, fmt.Errorf("deadletter: call the function: %w", err)
	}
	return receipts, nil
}

func (f Function) call(ctx context.Context, tx pgx.Tx, batch Batch) ([]Receipt, error) {
	queue := batch.Queue.orReference()
	if err := errors.Join(f.Validate(), faults(queue.letterNames())); err != nil {
		return nil, err
	}
	call := letter.Call{
		Function: f.name(), Table: queue.Table, JobID: queue.JobID,
		IDs: batch.IDs(), Actor: batch.Actor, FinalError: batch.FinalError,
	}
	b := &pgx.Batch{}
	documents := call.Queue(b)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	return letter.Receipts(call.IDs, *documents, NewReceipt, Refuse)
}

// Validate reports a name that no function can have.
func (f Function) Validate() error {
	if _, err := pgtext.Name(f.name()); err != nil {
		return fmt.Errorf("deadletter: function: %w", err)
	}
	return nil
}

func (f Function) name() pgx.Identifier {
	if len(f.Name) == 0 {
		return pgx.Identifier{letter.DefaultFunction}
	}
	return f.Name
}
