package reaper

// Placeholders in braces are names, and states as quoted literals; New puts them
// in once. A state is a literal because a generic plan, which does not know its
// parameters, could not use an index that is partial on the state.
//
// Where an array of keys is a parameter, the empty subquery beside it lends it
// the type of the key column, whatever that is.

// stale is the condition of a stale lease, by the clock of the database at the
// start of the transaction. A lease without an end fails it, as NULL is less than
// nothing; that it is not NULL is left unsaid, since the planner would count with
// it twice and expect few of many. Every statement that uses it has the grace, in
// microseconds, as its $1.
const stale = `q.{state} = {leased} and q.{lease_until} < now() - $1::bigint * interval '1 microsecond'`

// keyed is true of jobs that can be told from others. One without a key is
// nobody's: nothing could say which one is meant.
const keyed = `q.{job_id} is not null`

// still is stale for rows that are found by their keys. In coalesce the planner
// does not see what it could look up in the index of the leases: with statistics
// that know of no lease it would read there all that there are.
const still = `coalesce(` + stale + `, false)`

// sqlDryRun counts the stale leases, each of them or up to a number, and reads the
// oldest of them, in one snapshot. It locks nothing. It returns one row without a
// job when there is none. Overdue is floored to the second; a lease that ended at
// -infinity is overdue by the largest bigint. Served by job_queue_lease_until_idx,
// for the count alone where the table is vacuumed.
//
//	$1 grace  bigint, microseconds
//	$2 limit  bigint
//	$3 count  bigint, where to stop counting; only of sqlDryRunUpTo
const (
	sqlDryRun = `-- reaper.dry_run
` + dryRunHead + `
  select count(*) as stale_lease_count
  from {queue} q
  where ` + stale + `
` + dryRunTail

	sqlDryRunUpTo = `-- reaper.dry_run_up_to
` + dryRunHead + `
  select count(*) as stale_lease_count
  from (
    select
    from {queue} q
    where ` + stale + `
    limit $3::bigint
  ) s
` + dryRunTail

	dryRunHead = `select now() as evaluated_at, c.stale_lease_count,
  j.job_id, j.job_kind, j.lease_owner, j.lease_until, j.attempts, j.max_attempts, j.overdue_seconds
from (`

	dryRunTail = `) c
left join (
  select q.{job_id} as key,
    q.{job_id}::text as job_id,
    {kind}::text as job_kind,
    q.{lease_owner}::text as lease_owner,
    q.{lease_until} as lease_until,
    coalesce(q.{attempts}, 0)::bigint as attempts,
    coalesce(q.{max_attempts}, 9223372036854775807)::bigint as max_attempts,
    case when q.{lease_until} = '-infinity' then 9223372036854775807
      else floor(extract(epoch from now() - q.{lease_until}))::bigint
    end as overdue_seconds
  from {queue} q
  where ` + stale + `
    and ` + keyed + `
  order by q.{lease_until}, q.{job_id}
  limit $2::bigint
) j on true
order by j.lease_until, j.key`
)

// sqlClaim locks and reads one batch of stale leases, oldest first, of a stretch
// of that order. Rows that another reaper or a worker has locked are skipped, not
// waited for. Served by job_queue_lease_until_idx, which finds the stretch too.
//
//	$1 grace        bigint, microseconds
//	$2 limit        bigint
//	$3 lease_until  timestamptz of the place before it, NULL to begin at the oldest
//	$4 job id       of the key's type; NULL: behind every job of that lease_until
//	$5 lease_until  timestamptz, the last of the stretch, NULL to go on to the end
const sqlClaim = `-- reaper.claim
select now() as now,
  q.{job_id}::text as id,
  {kind}::text as kind,
  q.{lease_owner}::text as owner,
  q.{lease_until} as lease_until,
  coalesce(q.{attempts}, 0)::bigint as attempts,
  coalesce(q.{max_attempts}, 9223372036854775807)::bigint as max_attempts,
  case pg_typeof(q.{attempts})
    when 'smallint'::regtype then 32767
    when 'integer'::regtype then 2147483647
    else 9223372036854775807
  end as most_attempts
from {queue} q
where ` + stale + `
  and ` + keyed + `
  and q.{lease_until} >= coalesce($3::timestamptz, '-infinity')
  and ($3::timestamptz is null or q.{lease_until} > $3::timestamptz or q.{job_id} > $4)
  and q.{lease_until} <= coalesce($5::timestamptz, 'infinity')
order by q.{lease_until}, q.{job_id}
limit $2::bigint
for update of q skip locked`

// sqlOverfull reads whether more leases are stale than an apply may find. It
// stops counting there. Served by job_queue_lease_until_idx.
//
//	$1 grace    bigint, microseconds
//	$2 maximum  bigint
const sqlOverfull = `-- reaper.overfull
select count(*) > $2::bigint
from (
  select
  from {queue} q
  where ` + stale + `
  limit least($2::bigint, 9223372036854775806) + 1
) s`

// sqlLook reads what a loop needs to know before it reaps or sleeps: whether a
// lease is stale, from a place on; how many microseconds are left until the next
// one is; the end up to which leases are stale now, which is the next place; and
// when the server started. Served by job_queue_lease_until_idx.
//
//	$1 grace        bigint, microseconds
//	$2 lease_until  timestamptz of the place, NULL to begin at the oldest
const sqlLook = `-- reaper.look
select
  coalesce((
    select true
    from {queue} q
    where ` + stale + `
      and ` + keyed + `
      and q.{lease_until} >= coalesce($2::timestamptz, '-infinity')
    order by q.{lease_until}
    limit 1
  ), false) as stale,
  (
    select extract(epoch from q.{lease_until} - (now() - $1::bigint * interval '1 microsecond')) * 1000000
    from {queue} q
    where q.{state} = {leased}
      and q.{lease_until} >= now() - $1::bigint * interval '1 microsecond'
      and q.{lease_until} < now() + interval '1 day'
    order by q.{lease_until}
    limit 1
  )::bigint as due_micros,
  now() - $1::bigint * interval '1 microsecond' as stale_before,
  pg_postmaster_start_time() as started_at,
  (extract(epoch from now() - pg_postmaster_start_time()) * 1000000)::bigint as uptime_micros`

// sqlReset gives claimed jobs back to the queue and returns the place in the
// batch of each row it changed, 0 for one that a trigger kept leased. The claim
// holds their locks; the condition is repeated all the same. Served by the
// queue's key.
//
//	$1 grace       bigint, microseconds
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
returning case when q.{state} <> {leased} then u.n else 0 end`

// sqlBump counts the failed try of claimed jobs whose attempts are spent, and
// returns the place in the batch of each row it changed, 0 for one whose
// attempts a trigger kept. Served by the queue's key.
//
//	$1 grace     bigint, microseconds
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
//	$1 grace       bigint, microseconds
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
//	$1 grace    bigint, microseconds
//	$2 job ids  array of the key's type
const sqlUnclosed = `-- reaper.unclosed
select q.{job_id}::text
from {queue} q
where q.{job_id} = any($2)
  and ` + still

// sqlSettled fails, by a division by zero, when one of the moved jobs is leased
// still, or has other attempts than its bumped ones. A commit that travels behind
// it is then not made. Served by the queue's key.
//
//	$1 grace     bigint, microseconds
//	$2 job ids   array of the key's type
//	$3 attempts  bigint[], bumped
const sqlSettled = `-- reaper.settled
select 1 / (count(*) = 0)::int
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $2),
  $3::bigint[]
) as u(job_id, attempts)
join {queue} q on q.{job_id} = u.job_id
where ` + still + `
  or q.{attempts} is distinct from u.attempts`
