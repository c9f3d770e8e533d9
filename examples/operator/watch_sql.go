package main

// sqlBacklog counts the leased jobs by kind. Served by the index on the lease's
// end, which it reads whole.
//
//	$1 grace  interval
const sqlBacklog = `-- operator.backlog
select coalesce({job_kind}::text, '') as kind,
  count(*) filter (where {stale}) as stale,
  count(*) filter (where {stale} and {attempts}::bigint >= {max_attempts}::bigint - 1) as to_move,
  count(*) filter (where not {stale}) as live,
  coalesce(floor(extract(epoch from now() - min({lease_until}) filter (
    where {stale} and {lease_until} > '-infinity'))), 0)::bigint as overdue_seconds
from {queue}
where {state} = {leased} and {lease_until} is not null
group by 1
order by stale desc, overdue_seconds desc, kind`

// stale is the condition of sqlBacklog's counts.
const stale = `({lease_until} < now() - $1::interval)`

// reaped is the rows that reapers have reaped in the last while. A reset shows
// in the queue until the job ends, and in a retry that waits its time is that of
// the next try less the backoff; a row that waits is served by the workers' index.
// A move is a dead letter.
//
//	$1 while         interval
//	$2 backoff base  float8, seconds
const reaped = `with reaped as (
  select {at} as at, 'reset' as what, coalesce({job_kind}::text, '') as kind, {job_id}::text as job_id,
    {attempts}::bigint as attempts, {max_attempts}::bigint as max_attempts, null::text as by
  from {queue}
  where {state} = {retry_waiting} and {last_error} = 'lease_expired_reaped' and {scheduled_at} > now() - $1::interval
  union all
  select {at}, 'reset', coalesce({job_kind}::text, ''), {job_id}::text, {attempts}, {max_attempts}, null
  from {queue}
  where {state} = {leased} and {last_error} = 'lease_expired_reaped' and {scheduled_at} > now() - $1::interval
  union all
  select d.moved_at, 'move', d.job_kind, d.job_id::text, d.attempts, d.max_attempts, d.moved_by
  from {letters} d
  where d.moved_at > now() - $1::interval
)`

// resetAt is about when a row was reset. The bound keeps an absurd base from
// leaving the range of timestamps.
const resetAt = `{scheduled_at} - make_interval(secs => least(1e9,
    $2::float8 * power(2, least(greatest({attempts} - 1, 0), 10)::float8)))`

// sqlReaped counts what was reaped, in slices of ten seconds.
const sqlReaped = `-- operator.reaped
` + reaped + `
select to_timestamp(floor(extract(epoch from at)::float8 / 10) * 10) as start,
  count(*) filter (where what = 'reset') as resets,
  count(*) filter (where what = 'move') as moves
from reaped
where at > now() - $1::interval and at <= now()
group by 1
order by 1`

// sqlLast reads what was reaped last.
const sqlLast = `-- operator.last
` + reaped + `
select at, what, kind, job_id, attempts, max_attempts, by
from reaped
where at > now() - $1::interval and at <= now()
order by at desc, job_id
limit 20`

// sqlRedrivable tells whether the dead letters have marks of a redrive.
const sqlRedrivable = `-- operator.redrivable
select exists (
  select from pg_attribute
  where attrelid = to_regclass($1::text) and attname = 'redriven_at' and not attisdropped
)`

// sqlLetters counts the dead letters that nobody has sent back, up to a bound, and
// those of the last hour.
//
//	$1 bound  bigint
const sqlLetters = `-- operator.letters
select
  (select count(*) from (select from {letters} d where {undriven} limit $1::bigint) x) as waiting,
  (select count(*) from (
    select from {letters} d where d.moved_at > now() - interval '1 hour' limit $1::bigint
  ) x) as last_hour`
