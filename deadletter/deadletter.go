package deadletter

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Mover stores jobs whose attempts are used up. Move is called inside the apply's
// transaction; the queue rows of batch are locked by it and carry the bumped
// attempts already, and their state and lease are still those of the lease.
//
// Move returns exactly one receipt for each job, in any order. It may close the
// queue rows itself, as a function in the database does, or leave them: the
// reaper closes what is still leased. When Move returns an error, or a receipt
// that refuses, what it wrote is rolled back and it is called again with fewer
// jobs, so it must write through tx alone. The calls halve the batch until the jobs that
// cause the error are alone: for each of them at most twice the binary logarithm of the
// batch, and about two where all of them do. After an error that wraps
// [ErrUnavailable] no job is tried alone, and none of them is moved.
type Mover interface {
	Move(ctx context.Context, tx pgx.Tx, batch Batch) ([]Receipt, error)
}

// ErrUnavailable is for a mover's errors to wrap when it can move nothing now,
// because what it depends on is away. The apply resets what is to be reset, and the
// jobs that were to be moved are its failures. With nothing to reset it returns the
// error, and changes nothing.
var ErrUnavailable = errors.New("deadletter: mover is unavailable")

// MoverFunc makes a [Mover] of a function.
type MoverFunc func(ctx context.Context, tx pgx.Tx, batch Batch) ([]Receipt, error)

// Move calls f.
func (f MoverFunc) Move(ctx context.Context, tx pgx.Tx, batch Batch) ([]Receipt, error) {
	return f(ctx, tx, batch)
}

// Validate reports a nil function.
func (f MoverFunc) Validate() error {
	if f == nil {
		return errors.New("deadletter: mover function is nil")
	}
	return nil
}

// Batch is what a mover is given: at least one job, oldest lease first.
type Batch struct {
	Actor      string // who reaps, as given to Apply
	FinalError string // what to store as the reason
	Jobs       []Job
	Queue      Queue
}

// Job is one job whose attempts are used up.
type Job struct {
	ID       string // the key in its text form
	Attempts int    // bumped already
}

// IDs returns the jobs' keys in their text form.
func (b Batch) IDs() []string {
	ids := make([]string, len(b.Jobs))
	for i, job := range b.Jobs {
		ids[i] = job.ID
	}
	return ids
}
