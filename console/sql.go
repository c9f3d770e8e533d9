package console

// statements are the console's own, with the names of a database.
type statements struct {
	expiries, letters, job, states, stamps string
}

// sqlExpiries reads the leases that expire next. Served by the index on the lease's end.
//
//	$1 limit  bigint
const sqlExpiries = `-- console.expiries
select coalesce({q.job_kind}::text, '') as kind,
  {q.lease_owner}::text as owner,
  {q.job_id}::text as job_id,
  {q.lease_until} as lease_until,
  extract(epoch from {q.lease_until} - now())::float8 as seconds
from {queue} q
where {q.state} = {leased} and {q.lease_until} >= now() and {q.lease_until} < 'infinity'
order by {q.lease_until}
limit $1::bigint`

// sqlLetters counts dead letters up to a bound, and among those the ones that were not
// redriven. It reads no more rows than that.
//
//	$1 bound  bigint
const sqlLetters = `-- console.letters
select count(*) as letters, count(*) filter (where x.redriven_at is null) as unredriven
from (select d.redriven_at from {letters} d limit $1::bigint) x`

// sqlJob reads the queue row of a job. Served by the key.
//
//	$1 job id  text of the key's type
const sqlJob = `-- console.job
select {q.job_id}::text as job_id,
  coalesce({q.job_kind}::text, '') as kind,
  {q.state}::text as state,
  {q.attempts}::bigint as attempts,
  {q.max_attempts}::bigint as max_attempts,
  {q.scheduled_at}::text as scheduled_at,
  {q.lease_owner}::text as owner,
  {q.lease_until}::text as lease_until,
  {q.last_error}::text as last_error
from {queue} q
where {q.job_id} = $1
limit 1`

// sqlStates reads the letters among some whose job is not in the state of dead letters,
// so that a redrive would skip them. Served by both keys.
//
//	$1 dead letter ids  array of the key's type
const sqlStates = `-- console.states
select d.dead_letter_id::text as dead_letter_id, d.job_id::text as job_id, {q.state}::text as state
from {letters} d
join {queue} q on {q.job_id} = d.job_id
where d.dead_letter_id = any($1) and {q.state} <> {dead}`

// sqlStamps reads the clock, and who changed settings and when, where the table has
// that. Served by the key.
//
//	$1 keys  text[]
const sqlStamps = `-- console.stamps
select c.key,
  (to_jsonb(c) ->> 'updated_at')::timestamptz as updated_at,
  to_jsonb(c) ->> 'updated_by' as updated_by
from {settings} c
where c.key = any($1::text[])`
