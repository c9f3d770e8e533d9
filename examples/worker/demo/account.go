package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/lease-governance/leasereaper/examples/worker/reapjob"
	"github.com/lease-governance/leasereaper/reaper"
)

// finding is what an account came to.
type finding struct {
	ok   bool
	text string
}

func found(ok bool, format string, args ...any) finding {
	return finding{ok: ok, text: fmt.Sprintf(format, args...)}
}

// String lays a finding out for people.
func (f finding) String() string {
	mark := "FAIL"
	if f.ok {
		mark = "ok  "
	}
	return "  " + mark + "  " + strings.ReplaceAll(f.text, "\n", "\n        ")
}

// account checks everything and says what came out.
func (d *demo) account(ctx context.Context) error {
	fmt.Fprintln(d.story.out, "\nThe accounts")
	sound := true
	for _, check := range []func(context.Context) (finding, error){
		d.endedOnce, d.cameBack, d.metricsOfTheLiving, d.metricsOfTheKilled, d.gauges, d.endInOrder,
	} {
		f, err := check(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(d.story.out, f)
		sound = sound && f.ok
	}
	if !sound {
		return fmt.Errorf("%w\n%s", ErrFailed, d.crew.lastWords())
	}
	return nil
}

// sqlEnds counts how the jobs ended, and those that did not end exactly once: in
// the witness's book, among the receipts, and among the dead letters.
//
//	$1 the kind to leave out  text
const sqlEnds = `-- demo.ends
select count(*),
  count(*) filter (where state = 'succeeded'),
  count(*) filter (where state = 'dead_letter'),
  count(*) filter (where ends <> 1
    or state not in ('succeeded', 'dead_letter')
    or receipts <> (state = 'succeeded')::int
    or letters <> (state = 'dead_letter')::int)
from (
  select q.state,
    (select count(*) from demo_history h
      where h.job_id = q.job_id and h.became in ('succeeded', 'dead_letter')) as ends,
    (select count(*) from worker_receipt r where r.job_id = q.job_id) as receipts,
    (select count(*) from job_dead_letter l where l.job_id = q.job_id) as letters
  from job_queue q
  where q.job_kind <> $1
) j`

func (d *demo) endedOnce(ctx context.Context) (finding, error) {
	var all, succeeded, dead, wrong int
	err := d.db.Pool.QueryRow(ctx, sqlEnds, reapjob.Kind).Scan(&all, &succeeded, &dead, &wrong)
	return found(all == d.supply() && wrong == 0,
		"%d jobs: %d succeeded, %d dead letters; %d did not end exactly once", all, succeeded, dead, wrong), err
}

// cameBack checks that each job of each killed worker was reaped from it.
func (d *demo) cameBack(ctx context.Context) (finding, error) {
	events, err := d.db.events(ctx)
	held, reset, moved := 0, 0, 0
	for _, k := range d.kills {
		for _, job := range k.jobs {
			held++
			switch outcomeFrom(events, k.name, job.ID) {
			case reaper.ActionReset:
				reset++
			case reaper.ActionMoved:
				moved++
			}
		}
	}
	return found(held > 0 && reset+moved == held,
		"%d workers were killed, at %d jobs: %d came back, %d had no try left", len(d.kills), held, reset, moved), err
}

// outcomeFrom is how the last lease that a worker had on a job ended.
func outcomeFrom(events []event, worker, jobID string) (outcome string) {
	for _, e := range events {
		if e.JobID == jobID && e.Owner == worker {
			outcome = e.Outcome
		}
	}
	return outcome
}

// endInOrder stops the workers and checks that they leave no lease behind.
func (d *demo) endInOrder(ctx context.Context) (finding, error) {
	if err := d.crew.stop(); err != nil {
		return found(false, "%v", err), nil
	}
	var leases int
	err := d.db.Pool.QueryRow(ctx, `select count(*) from job_queue where state = 'leased'`).Scan(&leases)
	return found(leases == 0, "the workers were stopped, and left %d leases behind", leases), err
}
