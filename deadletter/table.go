package deadletter

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

var _ Mover = Table{}

// Table stores dead jobs as rows of a table: job_id, job_kind, attempts,
// max_attempts, final_error, moved_by, and the whole queue row as job jsonb. The
// columns dead_letter_id and moved_at have defaults. The role needs INSERT on
// the table, SELECT on its columns job_id and dead_letter_id, and SELECT on the
// whole queue.
type Table struct {
	// Name is the table's name, with its schema or on the search path.
	// Empty: job_dead_letter.
	Name pgx.Identifier
}

// insertion copies queue rows, which the transaction has locked already, into the
// dead-letter table. Served by the queue's key.
//
// The star in to_jsonb makes the row of q, also where a column is called q.
//
//	$1 job ids      array of the key's type
//	$2 final error  text
//	$3 actor        text
const insertion = `insert into {dead_letter}
  (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
select q.{job_id}, {kind}, q.{attempts}, q.{max_attempts}, $2::text, $3::text, to_jsonb(q.*)
from {queue} q
where q.{job_id} = any($1)
returning job_id::text, dead_letter_id::text`

const sqlInsert = `-- deadletter.insert
` + insertion

// sqlInsertStrict is sqlInsert that fails, by a division by zero, unless it has
// stored each job once.
const sqlInsertStrict = `-- deadletter.insert_strict
with stored as (
` + insertion + `
)
select s.job_id, s.dead_letter_id
from (
  select count(*) = cardinality($1::text[])
    and count(distinct job_id) filter (where job_id = any($1::text[])) = cardinality($1::text[]) as each_once
  from stored
) c
left join stored s on true
where 1 / c.each_once::int = 1`

// stored is the document of a receipt.
type stored struct {
	DeadLetterID string `json:"dead_letter_id"`
	JobID        string `json:"job_id"`
	State        string `json:"state"`
	Refused      bool   `json:"refused"`
	Attempts     int    `json:"attempts"`
	FinalError   string `json:"final_error"`
}

// Move stores the batch with one statement. A row that a trigger on the table
// turned away is refused.
func (t Table) Move(ctx context.Context, tx pgx.Tx, batch Batch) ([]Receipt, error) {
	receipts, err := send(ctx, tx, t, batch)
	if err != nil {
		return nil, fmt.Errorf("deadletter: insert: %w", err)
	}
	return receipts, nil
}

// Queue queues the statement of Move.
func (t Table) Queue(b *pgx.Batch, batch Batch) func() ([]Receipt, error) {
	return t.queue(b, batch, sqlInsert)
}

// QueueStrict queues a statement that fails where Move would refuse a job.
func (t Table) QueueStrict(b *pgx.Batch, batch Batch) func() ([]Receipt, error) {
	return t.queue(b, batch, sqlInsertStrict)
}

func (t Table) queue(b *pgx.Batch, batch Batch, sql string) func() ([]Receipt, error) {
	name, err := t.quoted()
	if err != nil {
		return func() ([]Receipt, error) { return nil, err }
	}
	rows := make(map[string]string, len(batch.Jobs))
	sql = batch.Queue.in(sql, "{dead_letter}", name)
	b.Queue(sql, batch.array(), batch.FinalError, batch.Actor).Query(func(found pgx.Rows) error {
		var jobID, deadLetterID string
		_, err := pgx.ForEachRow(found, []any{&jobID, &deadLetterID}, func() error {
			rows[jobID] = deadLetterID
			return nil
		})
		return err
	})
	return func() ([]Receipt, error) { return receipts(batch, rows) }
}

// receipts makes one for each job of the batch. ids are those of the dead letters
// by those of the jobs.
func receipts(batch Batch, ids map[string]string) ([]Receipt, error) {
	receipts := make([]Receipt, len(batch.Jobs))
	for i, job := range batch.Jobs {
		id, ok := ids[job.ID]
		if !ok {
			receipts[i] = Refuse(job.ID, "the dead-letter table did not take the row")
			continue
		}
		document, err := json.Marshal(stored{
			DeadLetterID: id, JobID: job.ID, State: "dead_letter", Attempts: job.Attempts, FinalError: batch.FinalError,
		})
		if err != nil {
			return nil, fmt.Errorf("deadletter: receipt of job %q: %w", job.ID, err)
		}
		receipts[i] = Receipt{JobID: job.ID, Document: document}
	}
	return receipts, nil
}

// Validate reports a name that no table can have.
func (t Table) Validate() error {
	_, err := t.quoted()
	return err
}

func (t Table) quoted() (string, error) {
	return quoted("table", t.Name, "job_dead_letter")
}

// quoted quotes a configured name, or returns the default when there is none.
func quoted(what string, name pgx.Identifier, preset string) (string, error) {
	if len(name) == 0 {
		return preset, nil
	}
	sql, err := pgtext.Name(name)
	if err != nil {
		return "", fmt.Errorf("deadletter: %s: %w", what, err)
	}
	return sql, nil
}
