// Package pgboss maps the reaper to the tables of pg-boss, a queue for Node.js.
package pgboss

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// Config reaps jobs that have run for longer than their expire_seconds. pg-boss's own
// supervisor does this once a minute, in a process that has it on.
func Config() reaper.Config {
	return reaper.Config{
		Queue:      table(),
		DeadLetter: deadletter.InPlace{},
		OnApply:    copyDeadJobs,
	}
}

// HeartbeatConfig reaps jobs whose worker has sent no heartbeat for their
// heartbeat_seconds. It leaves jobs without heartbeats alone, so run it in addition to
// Config.
func HeartbeatConfig() reaper.Config {
	cfg := Config()
	cfg.Queue.Columns.LeaseUntil, cfg.Queue.Columns.LeaseSeconds = "heartbeat_on", "heartbeat_seconds"
	cfg.Queue.OnReset = reaper.Set{"completed_on": nil, "output": expired}
	cfg.Queue.OnMove = reaper.Set{"completed_on": reaper.Now, "output": expired}
	return cfg
}

// table is the parent of all partitions. pg-boss's claim adds one to retry_count if
// started_on is set. A worker ends a job only if retry_count is what its claim returned.
// So a reset keeps started_on: the next claim then counts, and a worker that lost the job
// cannot end it.
func table() reaper.Table {
	return reaper.Table{
		Name: pgx.Identifier{"pgboss", "job"},
		Columns: reaper.Columns{
			JobID:        "id",
			JobKind:      "name",
			State:        "state",
			Attempts:     "retry_count",
			MaxAttempts:  "retry_limit",
			ScheduledAt:  "start_after",
			LeaseOwner:   reaper.None,
			LeaseUntil:   "started_on",
			LeaseSeconds: "expire_seconds",
			LastError:    reaper.None, // output is a jsonb
		},
		States:        reaper.States{Leased: "active", RetryWaiting: "retry", DeadLetter: "failed"},
		CountsAtClaim: true,
		OnReset: reaper.Set{
			"started_on":   reaper.Keep,
			"heartbeat_on": nil,
			"completed_on": nil,
			"output":       expired,
		},
		OnMove: reaper.Set{
			"started_on":   reaper.Keep,
			"heartbeat_on": nil,
			"completed_on": reaper.Now,
			"output":       expired,
		},
	}
}

// expired is the output of a reaped job, in the form of pg-boss's errors.
const expired = `{"value": {"message": "lease expired"}}`

// Letters are pg-boss's failed jobs, for deadletter.List, Redrive and Purge.
func Letters() deadletter.Store {
	return deadletter.Store{
		Queue:   Config().Queue.DeadLetterQueue(),
		InPlace: true,
		MovedAt: "completed_on",
	}
}

// sqlCopyDeadJobs copies dead jobs to their dead-letter queues, as pg-boss does when it
// fails a job: each copy is a new job with the data of the dead one and its origin.
//
//	$1 names of queues  text[]
//	$2 ids of jobs      text[]
const sqlCopyDeadJobs = `-- pgboss.copy_dead_jobs
insert into pgboss.job (
  name, priority, data, retry_limit, retry_backoff, retry_delay, keep_until,
  deletion_seconds, expire_seconds, heartbeat_seconds, singleton_key, group_id, group_tier,
  source_name, source_id, source_created_on, source_retry_count, source_output,
  source_root_id, trace_context
)
select
  q.name, j.priority, j.data, q.retry_limit, q.retry_backoff, q.retry_delay,
  now() + q.retention_seconds * interval '1 second',
  q.deletion_seconds, q.expire_seconds, q.heartbeat_seconds, j.singleton_key, j.group_id, j.group_tier,
  j.name, j.id, j.created_on, j.retry_count, j.output,
  coalesce(j.source_root_id, j.id), j.trace_context
from unnest($1::text[], $2::text[]::uuid[]) as dead(name, id)
join pgboss.job as j on j.name = dead.name and j.id = dead.id
join pgboss.queue as q on q.name = j.dead_letter`

// copyDeadJobs is called inside the apply's transaction.
func copyDeadJobs(ctx context.Context, tx pgx.Tx, result *reaper.ApplyResult) error {
	if result.DeadLetterCount == 0 {
		return nil
	}
	var names, ids []string
	for _, action := range result.Actions {
		if action.Action == reaper.ActionMoved {
			names, ids = append(names, action.JobKind), append(ids, action.JobID)
		}
	}
	_, err := tx.Exec(ctx, sqlCopyDeadJobs, names, ids)
	return err
}
