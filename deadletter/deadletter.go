package deadletter

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Mover stores jobs whose attempts are used up. Move is called inside the apply's
// transaction; the queue rows of batch are locked by it and carry the bumped
// attempts already, and their state and lease are still those of the lease.
//
// Move returns exactly one receipt for each job, in any order. It may settle the
// queue rows itself, as a function in the database does, or leave them: the
// reaper closes what is still leased. When Move returns an error, or a receipt
// that refuses, what it wrote is rolled back and it is called again with fewer
// jobs, so its effects belong into tx alone. So that one job that cannot be moved
// does not keep the others, an error costs the mover about two more calls for
// each job to blame; an error that wraps [ErrUnavailable] is no job's fault:
// no job is tried alone, and none of them is moved.
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

// Queue names the queue's table and columns as SQL, quoted already, and its
// states as literals. JobKind and LastError are empty when the queue has no such
// column; a dead letter's kind is then empty too.
type Queue struct {
	Table, JobID, JobKind, Attempts, MaxAttempts          string
	State, ScheduledAt, LeaseOwner, LeaseUntil, LastError string

	Leased, RetryWaiting, DeadLetter string
}

// IDs returns the jobs' keys in their text form.
func (b Batch) IDs() []string {
	ids := make([]string, len(b.Jobs))
	for i, job := range b.Jobs {
		ids[i] = job.ID
	}
	return ids
}

// array is IDs as one parameter.
func (b Batch) array() string {
	return pgtext.Array(len(b.Jobs), func(i int) string { return b.Jobs[i].ID })
}

// attempts are the jobs' attempts as one parameter.
func (b Batch) attempts() string {
	return pgtext.Integers(len(b.Jobs), func(i int) int64 { return int64(b.Jobs[i].Attempts) })
}

// in puts the queue's names, and others as pairs of placeholder and SQL, into a
// statement. What it puts in is not searched again.
func (q Queue) in(sql string, others ...string) string {
	kind := "''"
	if q.JobKind != "" {
		kind = "q." + q.JobKind
	}
	return strings.NewReplacer(append(others,
		"{queue}", q.Table,
		"{job_id}", q.JobID,
		"{kind}", kind,
		"{attempts}", q.Attempts,
		"{attempts_label}", label(q.Attempts),
		"{max_attempts}", q.MaxAttempts,
	)...).Replace(sql)
}

// label is the name that a quoted name stands for, as a literal.
func label(quoted string) string {
	name := quoted
	if strings.HasPrefix(quoted, `"`) && len(quoted) > 1 {
		name = strings.ReplaceAll(quoted[1:len(quoted)-1], `""`, `"`)
	}
	literal, _ := pgtext.Label(name) // the name was checked when it was quoted
	return literal
}
