// Package delayedjob maps the reaper to the table of delayed_job, a queue for Ruby.
package delayedjob

import (
	"cmp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// maxAttempts is Delayed::Worker.max_attempts, unless your application sets another.
const maxAttempts = 25

// Config reaps delayed_jobs. longest is the longest time that a job may run. Too low, and
// jobs run twice at once. Set it below Delayed::Worker.max_run_time: after that time the
// workers take lost jobs themselves and count no attempt, so a job that kills its worker
// is tried for ever.
//
// The reaper keeps dead jobs. Set Delayed::Worker.destroy_failed_jobs to false, so that
// delayed_job keeps its own too.
func Config(longest time.Duration) reaper.Config {
	return reaper.Config{
		Queue:      table(longest),
		DeadLetter: deadletter.InPlace{},
		Backoff:    backoff.PolicyFunc(delay),
	}
}

// table is delayed_jobs. It has no column of states: a job is leased while it is locked,
// and dead once failed_at is set. delayed_job leaves its dead jobs locked, so Only leaves
// out rows with a failed_at.
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
		LeaseLength: cmp.Or(longest, 4*time.Hour), // the default of max_run_time
		MaxAttempts: maxAttempts,
		TimesInUTC:  true,
		Only:        reaper.Set{"failed_at": nil},
		OnReset:     reaper.Set{"failed_at": nil, "updated_at": reaper.Now},
		OnMove:      reaper.Set{"failed_at": reaper.Now, "updated_at": reaper.Now},
	}
}

// Letters are the jobs that the reaper has moved, for deadletter.List, Redrive and Purge.
// Jobs that failed in a worker are not among them, because they are still locked.
func Letters() deadletter.Store {
	return deadletter.Store{
		Queue:   table(0).DeadLetterQueue(),
		InPlace: true,
		MovedAt: "failed_at",
	}
}

// delay is delayed_job's own: 5 + attempts^4 seconds.
func delay(attempts int, _ int64) int64 {
	n := int64(min(attempts, 100))
	return 5 + n*n*n*n
}
