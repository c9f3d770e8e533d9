package reapjob

// sqlSchedule adds a reap job unless there is one that has not ended. It takes
// the place of those that a deleted or buried one left. Served by
// job_queue_one_reap_job_idx.
//
//	$1 payload  jsonb
//	$2 wait     interval
const sqlSchedule = `-- reapjob.schedule
insert into job_queue (job_kind, payload, scheduled_at)
values ('` + Kind + `', $1, now() + $2::interval)
on conflict (job_kind)
  where job_kind = '` + Kind + `' and state in ('ready', 'retry_waiting', 'leased')
  do nothing`

// sqlForget deletes the reap job before the last one, so that a queue does not
// grow by a row every few seconds. The last one stays, to be looked at. Served by
// the queue's key.
//
//	$1 job id  uuid
const sqlForget = `-- reapjob.forget
delete from job_queue
where job_id = $1::uuid
  and job_kind = '` + Kind + `'
  and state = 'succeeded'`

// sqlAway reads how long the server has been up, and how long after its time the
// reap job is done. Served by the queue's key.
//
//	$1 job id  uuid
const sqlAway = `-- reapjob.away
select now() - pg_postmaster_start_time(), now() - scheduled_at
from job_queue
where job_id = $1::uuid`
