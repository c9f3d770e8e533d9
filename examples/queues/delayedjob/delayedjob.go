// Package delayedjob maps the reaper to the table of delayed_job, a queue for Ruby.
package delayedjob

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// maxAttempts is Delayed::Worker.max_attempts, unless your application sets another.
const maxAttempts = 25

// Config reaps delayed_jobs. longest is the longest that a job may run. Too low, and
// jobs run twice at once. With Delayed::Worker.max_run_time or more, workers take lost
// jobs before the reaper sees them, and count no attempt: a job that kills its worker
// is tried for ever.
//
// It keeps dead jobs, so set Delayed::Worker.destroy_failed_jobs to false.
func Config(longest time.Duration) reaper.Config {
	return reaper.Config{
		Queue:      table(longest),
		DeadLetter: deadletter.InPlace{},
		Backoff:    backoff.PolicyFunc(delay),
	}
}

// table is delayed_jobs. A job has no state: it is leased while it is locked, and dead
// with a failed_at. delayed_job leaves its dead jobs locked, which Only keeps out.
func table(longest time.Duration) reaper.Table {
	return reaper.Table{
		Name: pgx.Identifier{"delayed_jobs"},
		Columns: reaper.Columns{
			JobID:       "id",
			JobKind:     reaper.None, // it is inside handler, a YAML document
			State:       reaper.None,
			Attempts:    "attempts",
			MaxAttempts: reaper.None,
			ScheduledAt: "run_at",
			LeaseOwner:  "locked_by",
			LeaseUntil:  "locked_at",
			LastError:   "last_error",
		},
		LeaseLength: longest,
		MaxAttempts: maxAttempts,
		TimesInUTC:  true,
		Only:        reaper.Set{"failed_at": nil},
		OnReset:     reaper.Set{"failed_at": nil, "updated_at": reaper.Now},
		OnMove:      reaper.Set{"failed_at": reaper.Now, "updated_at": reaper.Now},
	}
}

// Letters are the jobs that the reaper has moved, to list, redrive and purge. Those that
// failed in a worker are not among them, as they are still locked.
func Letters() deadletter.Store {
	return deadletter.Store{
		Queue:   table(0).DeadLetterQueue(),
		InPlace: true,
		MovedAt: "failed_at",
	}
}

// delay is delayed_job's own: five seconds and the fourth power of the attempts.
func delay(attempts int, _ int64) int64 {
	n := int64(min(attempts, 100))
	return 5 + n*n*n*n
}
