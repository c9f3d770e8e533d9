package deadletter

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/isolate"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// errIgnored is a failure's error when a write changed nothing and said nothing.
var errIgnored = errors.New("the write was rejected without an error, by a trigger or a policy")

// write writes jobs in groups, so that those which are rejected stand alone and
// fail. When none can be written, for a reason that is no job's, that is the error.
// queue queues the writes of a group, and returns which jobs the server left out.
func (t target) write(
	ctx context.Context, tx pgx.Tx, jobs []*deadJob,
	queue func(b *pgx.Batch, jobs []*deadJob) (missing func(*deadJob) bool),
) error {
	w := &isolate.Writer[*deadJob]{
		Tx: tx,
		Queue: func(b *pgx.Batch, jobs []*deadJob) func(context.Context) error {
			missing := queue(b, jobs)
			return func(context.Context) error { return leftOut(jobs, missing) }
		},
		Reject:      (*deadJob).fail,
		Ends:        func(err error) bool { return !mayConcernJobs(err) || pgtx.IsConflict(err) },
		ConcernsAll: mayConcernAll,
		Constraints: !t.nested, // a caller's are left to the caller
	}
	if !t.nested {
		w.ShortLockTimeout = t.lockTimeout.short()
	}
	err := w.Write(ctx, jobs)
	return discreet(cmp.Or(err, w.Blocked))
}

// leftOut is the error that names the jobs that are missing in what the server
// wrote, if there are any.
func leftOut(jobs []*deadJob, missing func(*deadJob) bool) error {
	causes := map[*deadJob]error{}
	for _, job := range jobs {
		if missing(job) {
			causes[job] = errIgnored
		}
	}
	if len(causes) == 0 {
		return nil
	}
	return &isolate.RejectedError[*deadJob]{Causes: causes}
}

// mayConcernJobs reports whether an error may concern some of the jobs, so that the
// others could be written without them.
func mayConcernJobs(err error) bool {
	if pgtx.Code(err) != "" {
		return pgtx.IsServerError(err) && pgtx.Code(err) != pgtx.CodeReadOnly
	}
	var rejected *isolate.RejectedError[*deadJob]
	return errors.As(err, &rejected)
}

// mayConcernAll leaves out of [pgtx.MayConcernAll] a lock, which is a row's here,
// and a name or a syntax that is wrong in a stored value: a tsquery, a regclass.
// Those of a statement have a position in its text.
func mayConcernAll(err error) bool {
	if !pgtx.MayConcernAll(err) || pgtx.Code(err) == pgtx.CodeLockNotAvailable {
		return false
	}
	pgErr := pgtx.ServerError(err)
	class := pgtx.Class(pgErr.Code)
	ofValue := (class == "42" || class == "3F") && pgErr.Code != insufficientPrivilege &&
		pgErr.Position == 0 && pgErr.InternalPosition == 0
	return !ofValue
}
