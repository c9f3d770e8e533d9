package deadletter

import (
	"context"
	"math/bits"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/letter"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// lockAndCount locks what the jobs are made of, and counts what someone else has
// locked, in one exchange.
func (r *redrive) lockAndCount(ctx context.Context) error {
	keys := keysOf(r.jobs)
	var n, count int
	var letterID string
	b := &pgx.Batch{}
	queueEach(b, func() {
		job := r.jobs[n-1]
		job.letters = append(job.letters, letterID)
	}, []any{&n, &letterID}, r.in(sqlUnredriven), keys)
	queueEach(b, func() { r.jobs[n-1].count = count }, []any{&n, &count}, r.in(sqlCount), keys)
	r.queueLockRows(b, r.jobs, "{dead_state}, {retry_waiting}")
	return r.tx.SendBatch(ctx, b).Close()
}

// ready returns the jobs that can be redriven, spread evenly, and whether rows of
// some are gone.
func (r *redrive) ready() (ready []*deadJob, gone bool) {
	for _, job := range r.jobs {
		if job.skip = job.skipReason(); job.skip == "" {
			ready = append(ready, job)
			gone = gone || job.isGone()
		}
	}
	for i, job := range ready {
		job.wait = fraction(r.spread, i, len(ready))
	}
	return ready, gone
}

// fraction is i nth of a whole. The product does not fit 64 bits.
func fraction(whole time.Duration, i, n int) time.Duration {
	hi, lo := bits.Mul64(uint64(whole), uint64(i)) //nolint:gosec // neither is negative
	quotient, _ := bits.Div64(hi, lo, uint64(n))   //nolint:gosec // i < n, so that it is less than the whole
	return time.Duration(quotient)                 //nolint:gosec // likewise
}

// skipReason is why the job cannot be redriven; empty: it can.
func (job *deadJob) skipReason() string {
	switch {
	case job.alive > 0:
		return SkipAlive
	case job.dead > 1:
		return SkipAmbiguous
	case job.locked != job.dead || len(job.letters) != job.count:
		return SkipLocked
	}
	return ""
}

// queueWrites queues what redrives jobs, and returns which of them the server
// left out.
func (r *redrive) queueWrites(b *pgx.Batch, jobs []*deadJob) (missing func(*deadJob) bool) {
	var dead, gone []*deadJob
	var letters, newest []string
	for _, job := range jobs {
		letters = append(letters, job.letters...)
		if job.isGone() {
			gone = append(gone, job)
			newest = append(newest, job.letters[0])
		} else {
			dead = append(dead, job)
		}
	}
	back, marked := map[string]bool{}, map[string]bool{}
	if len(dead) > 0 {
		var n *int
		queueEach(b, func() {
			if n != nil {
				back[dead[*n-1].id] = true
			}
		}, []any{&n}, r.in(sqlRevive), keysOf(dead), waits(dead))
	}
	if len(gone) > 0 {
		b.Queue(letter.SQLPlainStyles)
		queueCollect(b, back, r.rebuild, array(newest), waits(gone), undecodable, escape)
		b.Queue(letter.SQLOwnStyles)
	}
	if !r.inPlace {
		queueCollect(b, marked, r.in(sqlMark), array(letters), r.actor)
	}
	return func(job *deadJob) bool {
		return !back[job.id] || !r.inPlace && !containsAll(marked, job.letters)
	}
}

// waits is how long each job waits before it is to run, in microseconds.
func waits(jobs []*deadJob) string {
	return pgtext.Integers(len(jobs), func(i int) int64 { return jobs[i].wait.Microseconds() })
}
