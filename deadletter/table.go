package deadletter

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/letter"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

var _ Mover = Table{}

// Table is a Mover that stores dead jobs as rows of a table: job_id, job_kind,
// attempts, max_attempts, final_error, moved_by, and the whole queue row as job, a
// jsonb. Where the queue has json columns with what a jsonb cannot hold, such as
// \u0000, job may be json or text. The columns dead_letter_id and moved_at have
// defaults. The role needs INSERT on the table, SELECT on its columns job_id and
// dead_letter_id, and SELECT on the whole queue. A kind that is NULL in the queue is NULL
// in job_kind too.
type Table struct {
	// Name is the table's name, with its schema or on the search path.
	// Empty: job_dead_letter.
	Name pgx.Identifier
}

// Move stores the batch with one statement. A row that a trigger on the table
// rejects without an error is refused.
func (t Table) Move(ctx context.Context, tx pgx.Tx, batch Batch) ([]Receipt, error) {
	ids, err := t.letters(ctx, tx, batch)
	if err != nil {
		return nil, fmt.Errorf("deadletter: insert: %w", err)
	}
	return receipts(batch, ids), nil
}

const sqlIsJSONB = `-- deadletter.is_jsonb
` + letter.SQLIsJSONB

// letters stores the batch and returns the ids of the dead letters by those of the
// jobs.
func (t Table) letters(ctx context.Context, tx pgx.Tx, batch Batch) (map[string]string, error) {
	name, err := t.quoted()
	if err != nil {
		return nil, err
	}
	n := batch.Queue.orReference().letterNames()
	n.Add("letters", name)
	if err := faults(n); err != nil {
		return nil, err
	}
	document := letter.JSON
	var isJSONB bool
	if err := tx.QueryRow(ctx, sqlIsJSONB, pgtext.Parts(t.name())...).Scan(&isJSONB); err != nil {
		return nil, err
	}
	if isJSONB {
		document = letter.JSONB
	}
	sql := strings.NewReplacer(n.Pairs...).Replace(letter.Insert(letter.ByKey, document))
	attempts := pgtext.Integers(len(batch.Jobs), func(i int) int64 { return int64(batch.Jobs[i].Attempts) })
	ids := make(map[string]string, len(batch.Jobs))
	b := &pgx.Batch{}
	b.Queue(letter.SQLPlainStyles)
	args := []any{nil, array(batch.IDs()), batch.FinalError, batch.Actor, "{}", attempts}
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		var jobID, letterID string
		_, err := pgx.ForEachRow(rows, []any{&jobID, &letterID}, func() error {
			ids[jobID] = letterID
			return nil
		})
		return err
	})
	b.Queue(letter.SQLOwnStyles)
	return ids, tx.SendBatch(ctx, b).Close()
}

// receipts makes one for each job of the batch.
func receipts(batch Batch, ids map[string]string) []Receipt {
	receipts := make([]Receipt, len(batch.Jobs))
	for i, job := range batch.Jobs {
		id, ok := ids[job.ID]
		if !ok {
			receipts[i] = Refuse(job.ID, "the dead-letter table did not take the row")
			continue
		}
		receipts[i] = Receipt{JobID: job.ID, Document: letter.Receipt{
			DeadLetterID: id, JobID: job.ID, Attempts: job.Attempts, FinalError: batch.FinalError,
		}.JSON()}
	}
	return receipts
}

// Validate reports a name that no table can have.
func (t Table) Validate() error {
	_, err := t.quoted()
	return err
}

func (t Table) quoted() (string, error) {
	name, err := pgtext.Name(t.name())
	if err != nil {
		return "", fmt.Errorf("deadletter: table: %w", err)
	}
	return name, nil
}

func (t Table) name() pgx.Identifier {
	if len(t.Name) == 0 {
		return pgx.Identifier{letter.DefaultTable}
	}
	return t.Name
}
