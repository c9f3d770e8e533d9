package deadletter

import (
	"context"
	"math/bits"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// look locks what the jobs are made of, and reads what someone else has locked,
// in one exchange.
func (r *redrive) look(ctx context.Context) error {
	keys := array(ids(r.jobs))
	var n, count int
	var letter string
	job := func() *deadJob { return r.jobs[n-1] }
	b := &pgx.Batch{}
	each(b, r.in(sqlUnredriven), keys, func() { job().letters = append(job().letters, letter) }, &n, &letter)
	each(b, r.in(sqlCount), keys, func() { job().count = count }, &n, &count)
	r.queueLook(b, r.jobs, "{dead_state}, {retry_waiting}")
	return r.tx.SendBatch(ctx, b).Close()
}

// ready returns the jobs that can be redriven, spread evenly, and whether rows of
// some are gone.
func (r *redrive) ready() (ready []*deadJob, gone bool) {
	for _, job := range r.jobs {
		if job.skip = job.obstacle(); job.skip == "" {
			ready = append(ready, job)
			gone = gone || job.gone()
		}
	}
	for i, job := range ready {
		job.wait = part(r.spread, i, len(ready))
	}
	return ready, gone
}

// part is i nth of a whole. The product does not fit 64 bits.
func part(whole time.Duration, i, n int) time.Duration {
	hi, lo := bits.Mul64(uint64(whole), uint64(i)) //nolint:gosec // neither is negative
	quotient, _ := bits.Div64(hi, lo, uint64(n))   //nolint:gosec // i < n, so that it is less than the whole
	return time.Duration(quotient)                 //nolint:gosec // likewise
}

// obstacle is why the job cannot be redriven.
func (job *deadJob) obstacle() string {
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
	var letters []string
	for _, job := range jobs {
		letters = append(letters, job.letters...)
		if job.gone() {
			gone = append(gone, job)
		} else {
			dead = append(dead, job)
		}
	}
	back, marked := map[string]bool{}, map[string]bool{}
	r.queueRevival(b, dead, back)
	r.queueRebuild(b, gone, back)
	collect(b, marked, r.in(sqlMark), array(letters), r.actor)
	return func(job *deadJob) bool { return !back[job.id] || !all(marked, job.letters) }
}

// queueRevival queues what sends jobs back whose queue rows are there.
func (r *redrive) queueRevival(b *pgx.Batch, jobs []*deadJob, back map[string]bool) {
	if len(jobs) == 0 {
		return
	}
	var n *int
	b.Queue(r.in(sqlRevive), array(ids(jobs)), waits(jobs)).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
			if n != nil {
				back[jobs[*n-1].id] = true
			}
			return nil
		})
		return err
	})
}

// queueRebuild queues what puts jobs back whose queue rows are gone, as their
// newest letters have them.
func (r *redrive) queueRebuild(b *pgx.Batch, jobs []*deadJob, back map[string]bool) {
	if len(jobs) == 0 {
		return
	}
	newest := make([]string, len(jobs))
	for i, job := range jobs {
		newest[i] = job.letters[0]
	}
	collect(b, back, r.insert, array(newest), waits(jobs), undecodable, escape)
}

// waits is how long each job waits before it is to run, in microseconds.
func waits(jobs []*deadJob) string {
	return pgtext.Integers(len(jobs), func(i int) int64 { return jobs[i].wait.Microseconds() })
}
