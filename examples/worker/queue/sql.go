package queue

// fence is the condition on which a job is changed: that it is leased as it was
// claimed. The owner must be new for each claim, and Claim makes it so: a redrive
// sets the attempts to 0, so owner and attempts would repeat with the worker's
// name. The attempts alone see a reset that left the owner unchanged.
//
//	$1 job id    uuid
//	$2 owner     text
//	$3 attempts  integer
const fence = `
where job_id = $1
  and lease_owner = $2
  and attempts = $3
  and state = 'leased'`

// sqlClaim leases the jobs that have been due for longest, skips rows that are
// locked, and locks those it takes. Served by job_queue_scheduled_at_idx.
//
//	$1 owner  text
//	$2 lease  interval
//	$3 kinds  text[]
//	$4 limit  integer
const sqlClaim = `-- worker.claim
with due as (
  select job_id
  from job_queue
  where state in ('ready', 'retry_waiting')
    and scheduled_at <= now()
    and job_kind = any($3)
  order by scheduled_at
  limit $4
  for update skip locked
)
update job_queue j
set state = 'leased',
  lease_owner = $1,
  lease_until = now() + $2::interval
from due
where j.job_id = due.job_id
returning j.job_id::text as id, j.job_kind as kind, j.payload, j.attempts, j.max_attempts, j.lease_owner as owner`

// sqlRenew begins the lease anew.
//
//	$4 lease  interval
const sqlRenew = `-- worker.renew
update job_queue
set lease_until = now() + $4::interval` + fence

const sqlComplete = `-- worker.complete
update job_queue
set state = 'succeeded',
  lease_owner = null,
  lease_until = null` + fence

// sqlRetry counts the try and sends the job back.
//
//	$4 reason   text
//	$5 seconds  bigint
const sqlRetry = `-- worker.retry
update job_queue
set state = 'retry_waiting',
  attempts = attempts + 1,
  scheduled_at = now() + make_interval(secs => $5::bigint),
  last_error = $4,
  lease_owner = null,
  lease_until = null` + fence

const sqlGiveBack = `-- worker.give_back
update job_queue
set state = case when attempts = 0 then 'ready' else 'retry_waiting' end,
  lease_owner = null,
  lease_until = null` + fence

// sqlCount counts the last try of a job, whose row is then stored as it is.
const sqlCount = `-- worker.count
update job_queue
set attempts = attempts + 1` + fence

// sqlClose closes the row of a job that was stored.
//
//	$4 reason  text
const sqlClose = `-- worker.close
update job_queue
set state = 'dead_letter',
  last_error = $4,
  lease_owner = null,
  lease_until = null` + fence

// sqlEnqueue is served by the queue's key.
//
//	$1 kind          text
//	$2 payload       jsonb
//	$3 max attempts  integer
const sqlEnqueue = `-- worker.enqueue
insert into job_queue (job_kind, payload, max_attempts)
values ($1, $2, $3)
returning job_id::text`
