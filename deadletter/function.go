package deadletter

import (
	"context"
	"errors"
	"fmt"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"
)

var _ Mover = Function{}

// Function hands dead jobs to an existing function of the database, called once
// a job, oldest lease first:
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

// sqlCall calls the function for each job, in the order of the array, in one
// statement. It is a subquery so that a function which returns a set answers
// each job with one document, or none, or an error. The empty subquery lends the
// array the type of the queue's key.
//
//	$1 job ids      array of the key's type
//	$2 actor        text
//	$3 final error  text
const sqlCall = `-- deadletter.call
select (select {function}(u.job_id, $2, $3)) as document
from unnest(array_cat(array(select q.{job_id} from {queue} q where false), $1))
  with ordinality as u(job_id, n)
order by u.n`

// Move calls the function for the whole batch with one statement.
func (f Function) Move(ctx context.Context, tx pgx.Tx, batch Batch) ([]Receipt, error) {
	receipts, err := send(ctx, tx, f, batch)
	if err != nil {
		return nil, fmt.Errorf("deadletter: call the function: %w", err)
	}
	return receipts, nil
}

// Queue queues the statement of Move.
func (f Function) Queue(b *pgx.Batch, batch Batch) func() ([]Receipt, error) {
	name, faulty := f.quoted()
	sql, err := batch.in(sqlCall, "function", name)
	if err := errors.Join(faulty, err); err != nil {
		return func() ([]Receipt, error) { return nil, err }
	}
	var documents [][]byte
	b.Queue(sql, batch.IDs(), batch.Actor, batch.FinalError).Query(func(found pgx.Rows) error {
		return pgxscan.ScanAll(&documents, found)
	})
	return func() ([]Receipt, error) { return answers(batch, documents) }
}

// answers makes receipts of what the function returned for each job.
func answers(batch Batch, documents [][]byte) (receipts []Receipt, err error) {
	receipts = make([]Receipt, len(documents))
	for i, document := range documents {
		if receipts[i], err = receipt(batch.Jobs[i].ID, document); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

func receipt(jobID string, document []byte) (Receipt, error) {
	if document == nil || string(document) == "null" {
		return Refuse(jobID, "the function returned NULL"), nil
	}
	return NewReceipt(jobID, document)
}

// Validate reports a name that no function can have.
func (f Function) Validate() error {
	_, err := f.quoted()
	return err
}

func (f Function) quoted() (string, error) {
	return quoted("function", f.Name, "fn_job_move_to_dead_letter")
}
