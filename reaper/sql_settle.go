package reaper

// sqlReset gives claimed jobs back to the queue and returns the place in the
// batch of each row it changed. For one that a trigger kept leased, and maybe
// changed in part, it fails, with a text that isKeptBack knows. The claim holds the
// rows' locks; the condition is repeated all the same. Served by the queue's key.
//
//	$1 scope
//	$2 last error  text; the condition uses it for queues that do not store it
//	$3 job ids     array of the key's type
//	$4 attempts    bigint[], bumped
//	$5 delays      bigint[], seconds
const sqlReset = `-- reaper.reset
update {queue} q
set {state} = {retry_waiting},
  {attempts} = u.attempts,
  {scheduled_at} = now() + make_interval(secs => u.delay_sec),
  {lease_owner} = null,
  {lease_until} = null{set_error}
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $3),
  $4::bigint[],
  $5::bigint[]
) with ordinality as u(job_id, attempts, delay_sec, n)
where q.{job_id} = u.job_id
  and ` + still + `
  and $2::text is not null
returning case when q.{state} <> {leased} then u.n else ('leasereaper: kept back ' || u.n)::bigint end`

// sqlBump counts the failed try of claimed jobs whose attempts are spent, and
// returns the place in the batch of each row it changed, 0 for one whose
// attempts a trigger kept. Served by the queue's key.
//
//	$1 scope
//	$2 job ids   array of the key's type
//	$3 attempts  bigint[], bumped
const sqlBump = `-- reaper.bump
update {queue} q
set {attempts} = u.attempts
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $2),
  $3::bigint[]
) with ordinality as u(job_id, attempts, n)
where q.{job_id} = u.job_id
  and ` + still + `
returning case when q.{attempts} = u.attempts then u.n else 0 end`

// sqlClose takes moved jobs out of the queue, unless their mover did. The
// condition keeps it from a live job of the same id, in a queue whose ids are not
// unique. Served by the queue's key.
//
//	$1 scope
//	$2 last error  text; the condition uses it for queues that do not store it
//	$3 job ids     array of the key's type
const sqlClose = `-- reaper.close
update {queue} q
set {state} = {dead_letter},
  {lease_owner} = null,
  {lease_until} = null{set_error}
where q.{job_id} = any($3)
  and ` + still + `
  and $2::text is not null`

// sqlUnclosed reads which of the moved jobs are leased still: a trigger turned
// the close away. Served by the queue's key.
//
//	$1 scope
//	$2 job ids  array of the key's type
const sqlUnclosed = `-- reaper.unclosed
select q.{job_id}::text
from {queue} q
where q.{job_id} = any($2)
  and (` + still + ` or q.{state} = {leased} and q.{lease_until} is null)`

// sqlCloseStrict is sqlClose that fails, by a division by zero, unless each of the
// jobs carries its bumped attempts and is leased no more. A commit that travels
// behind it is then not made. Served by the queue's key.
//
//	$4 attempts  bigint[], bumped
const sqlCloseStrict = `-- reaper.close_strict
with closed as (
  update {queue} q
  set {state} = {dead_letter},
    {lease_owner} = null,
    {lease_until} = null{set_error}
  from unnest(
    array_cat(array(select k.{job_id} from {queue} k where false), $3),
    $4::bigint[]
  ) as u(job_id, attempts)
  where q.{job_id} = u.job_id
    and q.{attempts} = u.attempts
    and ` + still + `
    and $2::text is not null
  returning q.{state} = {dead_letter} as as_meant
)
select 1 / (count(*) filter (where as_meant) = cardinality($4::bigint[]))::int
from closed`
