package reaper

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// claimedJob is a job that the transaction has locked, what is to be done with it,
// and in the end what became of it.
type claimedJob struct {
	id, kind, owner string
	address         pgtype.TID
	leaseUntil      int64 // microseconds, as time.UnixMicro takes and NegativeInfinity has them

	attempts  int   // as they stand; NULL is 0
	counter   int   // the same, or the lost leases where the queue counts those
	bumped    int   // the counter after the reap, where its column's type can hold that
	exhausted bool  // it is moved, instead of being reset
	delaySec  int64 // of a reset

	scheduledAt time.Time           // of a reset, as stored
	receipt     *deadletter.Receipt // of a move
	failure     *Failure            // not nil: it is as it was
}

func (job *claimedJob) isReset() bool { return !job.exhausted }

// fail marks a job as one that is as it was.
func (job *claimedJob) fail(err error) { job.failure = failureOf(job.id, err) }

// failureOf says why a job failed.
func failureOf(jobID string, err error) *Failure {
	failure := &Failure{JobID: jobID, SQLState: pgtx.Code(err), Error: err.Error()}
	if pgErr := pgtx.ServerError(err); pgErr != nil {
		failure.Error = pgErr.Message
	}
	return failure
}

// allFailed reports whether none of the jobs was reaped.
func allFailed(jobs []*claimedJob) bool {
	return !slices.ContainsFunc(jobs, func(job *claimedJob) bool { return job.failure == nil })
}

// cursor is a place in the order of leases. A claim begins after it. Its zero value
// is before every lease.
type cursor struct {
	leaseUntil pgtype.Timestamptz
	id         *string // nil: after every job of that lease end
}

// cursor is the place of a job.
func (job *claimedJob) cursor() *cursor {
	return &cursor{toServer(time.UnixMicro(job.leaseUntil)), &job.id}
}

// scanClaim reads the rows of a claim. It scans them itself, since nothing runs more
// often: texts are the same bytes in either format, and kinds and owners repeat.
// Jobs are allocated some at a time, and not copied again.
func (t Table) scanClaim(rows pgx.Rows) (jobs []*claimedJob, err error) {
	defer rows.Close()
	if err := t.checkLeaseType(rows); err != nil {
		return nil, err
	}
	var leaseUntil pgtype.Timestamptz
	var atEdge pgtype.Bool
	var job claimedJob
	columns := []any{nil, &job.address, nil, nil, &leaseUntil, &job.attempts, &atEdge, &job.exhausted}
	counter := &job.attempts
	if t.Columns.LostLeases != "" {
		columns, counter = append(columns, &job.counter), &job.counter
	}
	if t.TimesInUTC {
		columns = append(columns, nil) // checkLeaseType asks for its type
	}
	step := t.mapping().Step()
	repeated := map[string]string{}
	var block []claimedJob
	for rows.Next() {
		if err := rows.Scan(columns...); err != nil {
			return nil, err
		}
		texts := rows.RawValues()
		job.id, job.kind, job.owner = string(texts[0]), intern(repeated, texts[2]), intern(repeated, texts[3])
		job.leaseUntil = fromServer(leaseUntil).UnixMicro()
		job.counter, job.bumped = *counter, *counter
		if !atEdge.Bool {
			job.bumped += step
		}
		if len(block) == cap(block) {
			block = make([]claimedJob, 0, min(len(jobs)+1, 100))
		}
		block = append(block, job)
		jobs = append(jobs, &block[len(block)-1])
	}
	return jobs, rows.Err()
}

// intern returns one string for each text, which is empty for NULL.
func intern(known map[string]string, text []byte) string {
	s, ok := known[string(text)]
	if !ok {
		s = string(text)
		known[s] = s
	}
	return s
}

// The jobs as arrays for parameters.

func ids(jobs []*claimedJob) string {
	return pgtext.Array(len(jobs), func(i int) string { return jobs[i].id })
}

func addresses(jobs []*claimedJob) string {
	if !jobs[0].address.Valid {
		return "{}"
	}
	return pgtext.Addresses(len(jobs), func(i int) pgtype.TID { return jobs[i].address })
}

func bumped(jobs []*claimedJob) string {
	return pgtext.Integers(len(jobs), func(i int) int64 { return int64(jobs[i].bumped) })
}

func delays(jobs []*claimedJob) string {
	return pgtext.Integers(len(jobs), func(i int) int64 { return jobs[i].delaySec })
}
