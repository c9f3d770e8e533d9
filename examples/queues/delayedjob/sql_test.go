package delayedjob_test

// sqlClaim claims a job as delayed_job does. It also takes a job that has been locked
// for max_run_time, and counts no attempt. The times are Ruby's, in UTC.
//
//	$1 worker        text
//	$2 max_run_time  interval
const sqlClaim = `
update delayed_jobs
set
  locked_at = timezone('UTC', now()),
  locked_by = $1
where id in (
  select id
  from delayed_jobs
  where ((run_at <= timezone('UTC', now())
          and (locked_at is null or locked_at < timezone('UTC', now()) - $2::interval))
         or locked_by = $1)
    and failed_at is null
  order by priority, run_at
  limit 1
  for update skip locked
)
returning id`

// sqlDestroy completes a job as delayed_job does.
//
//	$1 id  bigint
const sqlDestroy = `delete from delayed_jobs where id = $1`

// sqlFail ends a job whose last attempt failed, with destroy_failed_jobs off. The row
// stays locked.
//
//	$1 id  bigint
const sqlFail = `
update delayed_jobs
set
  attempts = attempts + 1,
  last_error = 'no such order',
  failed_at = timezone('UTC', now())
where id = $1`
