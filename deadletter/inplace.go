package deadletter

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/letter"
)

// InPlace is a [Mover] that stores nothing: the queue's row stays, in the state of a
// dead job, and is the letter. A receipt's dead_letter_id is the job's id. [Store] has
// an InPlace of its own for [List], [Redrive] and [Purge].
type InPlace struct{}

// Move writes nothing, and accepts each job.
func (InPlace) Move(_ context.Context, _ pgx.Tx, batch Batch) ([]Receipt, error) {
	receipts := make([]Receipt, len(batch.Jobs))
	for i, job := range batch.Jobs {
		receipts[i] = Receipt{JobID: job.ID, Document: letter.Receipt{
			DeadLetterID: job.ID, JobID: job.ID, Attempts: job.Attempts, FinalError: batch.FinalError,
		}.JSON()}
	}
	return receipts, nil
}
