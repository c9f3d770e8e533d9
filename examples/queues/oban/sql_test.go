package oban_test

// sqlStage makes jobs available whose scheduled_at has passed, as Oban's stager does each
// second.
const sqlStage = `
update oban_jobs
set state = 'available'
where state in ('scheduled', 'retryable')
  and scheduled_at <= timezone('UTC', now())`

// sqlClaim claims jobs as Oban's basic engine does. It counts the attempt, and ignores
// scheduled_at: every available job may run now.
//
//	$1 queue  text
//	$2 limit  integer
//	$3 node   text
const sqlClaim = `
with subset as materialized (
  select id
  from oban_jobs
  where state = 'available'
    and queue = $1
  order by priority, scheduled_at, id
  limit $2
  for update skip locked
)
update oban_jobs as j
set
  state = 'executing',
  attempted_at = timezone('UTC', now()),
  attempted_by = array[$3::text, gen_random_uuid()::text],
  attempt = attempt + 1
from subset
where j.id = subset.id
  and j.attempt < j.max_attempts
returning j.id`

// sqlComplete completes a job as the engine does.
//
//	$1 id  bigint
const sqlComplete = `
update oban_jobs
set
  state = 'completed',
  completed_at = timezone('UTC', now())
where id = $1`

// sqlDiscard ends a job whose last attempt failed.
//
//	$1 id  bigint
const sqlDiscard = `
update oban_jobs
set
  state = 'discarded',
  discarded_at = timezone('UTC', now()),
  errors = array_append(errors, '{"error": "no such order"}'::jsonb)
where id = $1`

// sqlRetry gives a dead job back, as Oban.retry_job does.
//
//	$1 id  bigint
const sqlRetry = `
update oban_jobs
set
  state = 'available',
  max_attempts = greatest(max_attempts, attempt + 1),
  scheduled_at = timezone('UTC', now()),
  completed_at = null,
  cancelled_at = null,
  discarded_at = null
where id = $1
  and state not in ('available', 'executing')`
