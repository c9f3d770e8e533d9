package loop

import (
	"encoding/json"
	"fmt"
	"time"
)

// Bounds of what a loop remembers of rejected jobs.
const (
	mostRejected     = 10_000
	longestRejection = 10 * time.Minute
)

// Rejected remembers jobs that the applies of a loop rejected, up to a bound,
// so that each is tried again after a wait that doubles. Those beyond the bound are
// tried whenever they are met.
type Rejected struct {
	firstWait time.Duration
	jobs      map[string]rejectedJob
}

// NewRejected makes a memory of rejected jobs whose first wait is that long.
func NewRejected(firstWait time.Duration) *Rejected {
	return &Rejected{firstWait: firstWait, jobs: map[string]rejectedJob{}}
}

type rejectedJob struct {
	seenAt time.Time     // by the database's clock; the lease had ended before
	wait   time.Duration // the last one
	until  time.Time     // by the process's clock; then it may be tried
}

// Add remembers a job that an apply rejected, and reports whether it is new. seenAt
// is the database's time before it, now the process's. A wait is a tenth shorter than
// the next one is twice as long, so that it has ended when all is polled again.
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

// Excluded returns the jobs that are to wait as JSON, by id the time that the lease
// had ended before, or "" when there are none. A claim that begins at a cursor does
// not meet those that were seen before it.
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

// Tried forgets the jobs whose wait was over at a time, after all of them were
// tried: those that were rejected again wait again.
func (r *Rejected) Tried(at time.Time) {
	for id, job := range r.jobs {
		if !at.Before(job.until) {
			delete(r.jobs, id)
		}
	}
}

// Clear forgets all.
func (r *Rejected) Clear() { clear(r.jobs) }
