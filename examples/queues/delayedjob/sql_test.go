package delayedjob_test

// sqlClaim is how delayed_job claims a job. It takes one whose lock is as old as
// max_run_time too, and counts no attempt: a job that kills its worker is tried
// for ever. The times are Ruby's, in UTC.
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

// sqlDestroy is how it ends a job that went well.
//
//	$1 id  bigint
const sqlDestroy = `delete from delayed_jobs where id = $1`

// sqlFail is how it ends a job whose last try failed, with destroy_failed_jobs off. The
// row stays locked.
//
//	$1 id  bigint
const sqlFail = `
update delayed_jobs
set
  attempts = attempts + 1,
  last_error = 'no such order',
  failed_at = timezone('UTC', now())
where id = $1`
