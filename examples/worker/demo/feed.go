package demo

import (
	"context"
	"time"

	"github.com/lease-governance/leasereaper/examples/worker/jobs"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
)

// every is how often a job is added: three workers can just do it.
const every = 140 * time.Millisecond

// supply is how many jobs there are in all. The last ones come early enough for
// two more tries.
func (d *demo) supply() int { return int(d.cfg.For * 65 / 100 / every) }

// feed adds the jobs that are due.
func (d *demo) feed(ctx context.Context) error {
	for due := int(d.story.elapsed() / every); d.fed < min(due, d.supply()); d.fed++ {
		if _, err := queue.Enqueue(ctx, d.db.Pool, nextJob(d.fed)); err != nil {
			return err
		}
	}
	return nil
}

// nextJob is a mixture: most jobs succeed, some after a failure, some never; some
// have no second try, should their worker be killed.
func nextJob(i int) queue.NewJob {
	job := queue.NewJob{Kind: jobs.SendInvoice, MaxAttempts: 4}
	payload := jobs.Payload{TakesMS: 300 + i*37%300}
	switch {
	case i%20 == 4:
		job.Kind, payload.Declined, job.MaxAttempts = jobs.ChargeCard, 2, 2
	case i%5 == 4:
		job.Kind, payload.Declined = jobs.ChargeCard, 1
	case i%10 == 3:
		job.Kind, payload.TakesMS, job.MaxAttempts = jobs.ResizeImage, 1200, 1
	case i%2 == 1:
		job.Kind, payload.TakesMS = jobs.ResizeImage, 900+i*53%500
	}
	job.Payload = payload
	return job
}
