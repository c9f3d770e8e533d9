package loop

import (
	"encoding/json"
	"fmt"
	"time"
)

// Bounds of the rejected jobs that a loop remembers.
const (
	mostRejected     = 10_000
	longestRejection = 10 * time.Minute
)

// Rejected remembers the jobs that were rejected in a loop, so that each is retried after
// a wait that doubles. It has a bound; further jobs are retried without a wait.
type Rejected struct {
	firstWait time.Duration
	jobs      map[string]rejectedJob
}

// NewRejected returns an empty Rejected. A job's first wait is firstWait.
func NewRejected(firstWait time.Duration) *Rejected {
	return &Rejected{firstWait: firstWait, jobs: map[string]rejectedJob{}}
}

type rejectedJob struct {
	seenAt time.Time     // by the database's clock; the lease had expired before
	wait   time.Duration // the latest wait
	until  time.Time     // when the wait ends, by the process's clock
}

// Add remembers a rejected job and reports whether it is new. seenAt is the database's time
// before the apply, now the process's time. The job may be retried a tenth before its wait
// ends, so that the full poll at the end of the wait includes it.
func (r *Rejected) Add(id string, seenAt, now time.Time) (fresh bool) {
	job, known := r.jobs[id]
	if !known && len(r.jobs) == mostRejected {
		return true
	}
	job.wait = min(max(2*job.wait, r.firstWait), longestRejection)
	job.seenAt, job.until = seenAt, now.Add(job.wait-job.wait/10)
	r.jobs[id] = job
	return !known
}

// Excluded returns the waiting jobs as JSON, or "" if there are none. The JSON maps a job's
// id to a time before which its lease had expired. It omits jobs that were seen before
// cursor, since a claim from the cursor on does not find them.
func (r *Rejected) Excluded(cursor, now time.Time) (string, error) {
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
		return "", fmt.Errorf("loop: rejected jobs: %w", err)
	}
	return string(document), nil
}

// Tried forgets the jobs whose wait had ended by a time. It is called after a full drain,
// which has retried them: jobs that were rejected again have a new wait.
func (r *Rejected) Tried(at time.Time) {
	for id, job := range r.jobs {
		if !at.Before(job.until) {
			delete(r.jobs, id)
		}
	}
}

// Clear forgets all jobs.
func (r *Rejected) Clear() { clear(r.jobs) }
