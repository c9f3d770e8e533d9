package reaper

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Bounds of what a loop remembers of rejected jobs.
const (
	mostRejected     = 10_000
	longestRejection = 10 * time.Minute
)

// sqlNotRejected is a further condition of a claim: the job was not rejected, or
// its lease ends later than it did then. The document is searched once a row, in
// logarithmic time, so a claim that leaves out thousands goes on through its index.
//
//	$5 rejected  jsonb, by job id a time that the lease had ended before
const sqlNotRejected = `
  and q.{lease_until} >= coalesce(($5::jsonb ->> q.{job_id}::text)::timestamptz, '-infinity')`

// sqlClaimOthers is sqlClaim with sqlNotRejected.
var sqlClaimOthers = strings.Replace(sqlClaim, "\norder by", sqlNotRejected+"\norder by", 1)

// rejectedJobs remembers jobs that the applies of a loop rejected, up to a bound,
// so that each is tried again after a wait that doubles. Those beyond the bound are
// tried whenever they are met.
type rejectedJobs struct {
	firstWait time.Duration
	jobs      map[string]rejectedJob
}

type rejectedJob struct {
	seenAt time.Time     // by the database's clock; the lease had ended before
	wait   time.Duration // the last one
	until  time.Time     // by the process's clock; then it may be tried
}

// add remembers what an apply rejected and returns those that are new. seenAt is
// the database's time before it, now the process's. A wait is a tenth shorter than
// the next one is twice as long, so that it has ended when all is polled again.
func (r *rejectedJobs) add(failures []Failure, seenAt, now time.Time) (fresh []Failure) {
	for _, failure := range failures {
		job, known := r.jobs[failure.JobID]
		if !known {
			fresh = append(fresh, failure)
			if len(r.jobs) == mostRejected {
				continue
			}
		}
		job.wait = min(max(2*job.wait, r.firstWait), longestRejection)
		job.seenAt, job.until = seenAt, now.Add(job.wait-job.wait/10)
		if r.jobs == nil {
			r.jobs = map[string]rejectedJob{}
		}
		r.jobs[failure.JobID] = job
	}
	return fresh
}

// excluded returns the parameter of sqlNotRejected for the jobs that are to wait,
// or "" when there are none. A claim that begins at a cursor does not meet those
// that were seen before it.
func (r *rejectedJobs) excluded(cursor, now time.Time) (string, error) {
	waiting := map[string]time.Time{}
	for id, job := range r.jobs {
		if now.Before(job.until) && job.seenAt.After(cursor) {
			waiting[id] = job.seenAt.UTC()
		}
	}
	if len(waiting) == 0 {
		return "", nil
	}
	document, err := json.Marshal(waiting)
	if err != nil {
		return "", fmt.Errorf("reaper: rejected jobs: %w", err)
	}
	return string(document), nil
}

// tried forgets the jobs whose wait was over at a time, after all of them were
// tried: those that were rejected again wait again.
func (r *rejectedJobs) tried(at time.Time) {
	for id, job := range r.jobs {
		if !at.Before(job.until) {
			delete(r.jobs, id)
		}
	}
}

// clear forgets all.
func (r *rejectedJobs) clear() { r.jobs = nil }
