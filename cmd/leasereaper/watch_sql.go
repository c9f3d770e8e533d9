package main

// sqlBacklog counts the leased jobs by kind. Served by the index on the lease's end or
// start, which it reads whole; for a queue without one it reads the queue.
//
//	$1 scope
//	$2 kinds   text[], NULL for all
//	$3 except  text[], NULL for none
const sqlBacklog = `-- leasereaper.backlog
select kind,
  count(*) filter (where stale) as stale,
  count(*) filter (where stale and exhausted) as to_move,
  count(*) filter (where not stale) as live,
  coalesce(floor(extract(epoch from now() - min(lease_end) filter (
    where stale and lease_end > '-infinity'))), 0)::bigint as overdue_seconds
from (
  select {kind_text} as kind, {end} as lease_end, coalesce({stale}, false) as stale, {exhausted} as exhausted
  from {queue} q
  where {is_leased}{only_columns}
) l
where lease_end is not null
  and ($2::text[] is null or kind = any($2::text[]))
  and ($3::text[] is null or kind <> all($3::text[]))
group by kind
order by stale desc, overdue_seconds desc, kind`

// reaped is the rows that reapers have reaped in the last while. A reset shows
// in the queue until the job ends, and in a retry that waits its time is that of
// the next try less the backoff; a row that waits is served by the workers' index.
// A move is a dead letter.
//
//	$1 while         interval
//	$2 backoff base  float8, seconds
const reaped = `with reaped as (
  select {at} as at, 'reset' as what, {kind_text} as kind, q.{job_id}::text as job_id,
    q.{counter}::bigint as attempts, coalesce({limit}, 9223372036854775807) as max_attempts, null::text as by
  from {queue} q
  where {is_reset} and {was_reset}{only_columns} and q.{scheduled_at} > {since}
  union all
  select {at_before}, 'reset', {kind_text}, q.{job_id}::text, q.{counter}::bigint, {limit}, null
  from {queue} q
  where {is_leased} and {was_reset}{only_columns} and q.{scheduled_at} > {since}
  union all
  select d.moved_at, 'move', d.job_kind::text, d.job_id::text, d.attempts::bigint,
    coalesce(d.max_attempts, 9223372036854775807), nullif(d.moved_by, '')
  from {letters} d
  where d.moved_at > now() - $1::interval
)`

// resetAt is about when a row was reset. The bound keeps an absurd base from
// leaving the range of timestamps.
const (
	resetAt       = `{scheduled} - make_interval(secs => least(1e9, {backoff})::float8)`
	resetAtBefore = `{scheduled} - make_interval(secs => least(1e9, {backoff_before})::float8)`
)

// sqlReaped counts what was reaped, in slices of ten seconds.
const sqlReaped = `-- leasereaper.reaped
` + reaped + `
select to_timestamp(floor(extract(epoch from at)::float8 / 10) * 10) as start,
  count(*) filter (where what = 'reset') as resets,
  count(*) filter (where what = 'move') as moves
from reaped
where at > now() - $1::interval and at <= now()
group by 1
order by 1`

// sqlLast reads what was reaped last.
const sqlLast = `-- leasereaper.last
` + reaped + `
select at, what, kind, job_id, attempts, max_attempts, by
from reaped
where at > now() - $1::interval and at <= now()
order by at desc, job_id
limit 20`

// sqlRedrivable tells whether the dead letters have marks of a redrive.
const sqlRedrivable = `-- leasereaper.redrivable
select exists (
  select from pg_attribute
  where attrelid = to_regclass($1::text) and attname = 'redriven_at' and not attisdropped
)`

// sqlLetters counts the dead letters that nobody has sent back, up to a bound, and
// those of the last hour.
//
//	$1 bound  bigint
const sqlLetters = `-- leasereaper.letters
select
  (select count(*) from (select from {letters} d where {undriven} limit $1::bigint) x) as waiting,
  (select count(*) from (
    select from {letters} d where d.moved_at > now() - interval '1 hour' limit $1::bigint
  ) x) as last_hour`
