// Package graphileworker maps the reaper to the tables of graphile-worker, a queue
// for Node.js.
package graphileworker

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// Config reaps graphile-worker's jobs. longest is the longest time that a job may run.
// Too low, and jobs run twice at once. With four hours or more graphile-worker gives the
// jobs back first.
func Config(longest time.Duration) reaper.Config {
	return reaper.Config{
		Queue:      table(longest),
		DeadLetter: deadletter.InPlace{},
		Backoff:    backoff.PolicyFunc(delay),
		OnApply:    unlockQueues,
	}
}

// table is the table behind the view graphile_worker.jobs, which cannot be updated. It
// has no column of states: a job is leased while it is locked, and dead when its attempts
// have reached their maximum. No single value tells a dead job from one that waits, so a
// move sets run_at to infinity.
func table(longest time.Duration) reaper.Table {
	return reaper.Table{
		Name: pgx.Identifier{"graphile_worker", "_private_jobs"},
		Columns: reaper.Columns{
			JobID:       "id",
			JobKind:     "task_id", // the names are in _private_tasks
			State:       reaper.None,
			Attempts:    "attempts",
			MaxAttempts: "max_attempts",
			ScheduledAt: "run_at",
			LeaseOwner:  "locked_by",
			LeaseUntil:  "locked_at",
			LastError:   "last_error",
		},
		LeaseLength:   cmp.Or(longest, 4*time.Hour), // as long as the library waits
		CountsAtClaim: true,
		OnMove:        reaper.Set{"run_at": "infinity", "updated_at": reaper.Now},
	}
}

// Letters are the jobs that the reaper has moved, for deadletter.List, Redrive and Purge.
// Jobs whose last attempt failed in a worker are not among them.
func Letters() deadletter.Store {
	return deadletter.Store{
		Queue:   table(0).DeadLetterQueue(),
		InPlace: true,
		MovedAt: "updated_at",
	}
}

// delay is graphile-worker's own: e to the power of the attempts, in seconds.
func delay(attempts int, _ int64) int64 {
	return int64(math.Exp(float64(min(attempts, 10))))
}

// sqlUnlockQueues unlocks the named queues of reaped jobs. A named queue is locked while
// one of its jobs runs, so a worker that dies leaves it locked. A queue in which another
// job runs stays locked.
//
//	$1 ids of jobs  text[]
const sqlUnlockQueues = `-- graphileworker.unlock_queues
update graphile_worker._private_job_queues as q
set
  locked_at = null,
  locked_by = null
from graphile_worker._private_jobs as j
where j.id = any ($1::text[]::bigint[])
  and q.id = j.job_queue_id
  and q.locked_at is not null
  and not exists (
    select from graphile_worker._private_jobs as running
    where running.job_queue_id = q.id
      and running.locked_at is not null
  )`

// unlockQueues is called inside the apply's transaction. Without it, a job that was reset
// would wait for its locked queue, for up to four hours.
func unlockQueues(ctx context.Context, tx pgx.Tx, result *reaper.ApplyResult) error {
	ids := make([]string, len(result.Actions))
	for i, action := range result.Actions {
		ids[i] = action.JobID
	}
	_, err := tx.Exec(ctx, sqlUnlockQueues, ids)
	return err
}
