package reaper

// Placeholders in braces are names, and states as quoted literals; New puts them
// in once. A state is a literal because a generic plan, which does not know its
// parameters, could not use an index that is partial on the state.
//
// Where an array of keys is a parameter, the empty subquery next to it gives it
// the type of the key column, whatever that is.

// condStale is the condition of a stale lease, by the clock of the database at the
// start of the transaction. A NULL lease_until is not stale: the comparison yields
// NULL. An explicit IS NOT NULL is left out because the planner would multiply both
// selectivities and expect too few rows. Every statement that uses it has the scope
// as its $1: the grace in microseconds as a bigint, or all of it as a jsonb. With
// another grace for some kinds the index is read up to the shortest.
const condStale = `q.{state} = {leased} and q.{lease_until} < now() - {grace}{only}{ripe}`

// condHasKey is true of jobs that have an id. A job without one cannot be named in a
// result.
const condHasKey = `q.{job_id} is not null`

// condStaleByKey is condStale for rows that are found by their keys or addresses. The coalesce
// keeps the planner from the index of the leases: with statistics that know of no
// lease it would read all of them there.
const condStaleByKey = `coalesce(` + condStale + `, false)`

// condAtEdge is true of attempts that their column's type cannot count further. The
// size of the value tells a smallint, an integer and a bigint; hardly a row is asked
// for it.
const condAtEdge = `(q.{attempts} >= 32767 and q.{attempts} >= case pg_column_size(q.{attempts})
    when 2 then 32767 when 4 then 2147483647 else 9223372036854775807 end)`

// condExhausted is true of a job that is moved instead of being reset: one more failed
// attempt reaches the maximum, or cannot be counted. NULL attempts count as 0, and a
// NULL maximum is never reached.
const condExhausted = `(
    coalesce(q.{attempts}, 0)::bigint
      >= greatest(coalesce(q.{max_attempts}, 9223372036854775807)::bigint, -9223372036854775807) - 1
    or coalesce(` + condAtEdge + `, false))`

// sqlDryRun counts the stale leases, and how many of them would be moved, each of
// them or up to a number, and reads the oldest of them, in one snapshot. It locks
// nothing. It returns one row without a job when there is none. Overdue is floored
// to the second; a lease that ended at -infinity is overdue by the largest bigint.
// Served by job_queue_lease_until_idx.
//
//	$1 scope
//	$2 limit  bigint
//	$3 count  bigint, where to stop counting; only of sqlDryRunUpTo
const (
	sqlDryRun = `-- reaper.dry_run
` + dryRunHead + `
  select count(*) as stale_lease_count,
    count(*) filter (where ` + condExhausted + `) as move_count
  from {queue} q
  where ` + condStale + `
` + dryRunTail

	sqlDryRunUpTo = `-- reaper.dry_run_up_to
` + dryRunHead + `
  select count(*) as stale_lease_count,
    count(*) filter (where exhausted and n < $3::bigint) as move_count
  from (
    select ` + condExhausted + ` as exhausted, row_number() over () as n
    from {queue} q
    where ` + condStale + `
    limit $3::bigint
  ) s
` + dryRunTail

	dryRunHead = `select now() as evaluated_at, c.stale_lease_count, c.move_count,
  j.job_id, j.job_kind, j.lease_owner, j.lease_until, j.attempts, j.max_attempts, j.overdue_seconds, j.exhausted
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
    end as overdue_seconds,
    ` + condExhausted + ` as exhausted
  from {queue} q
  where ` + condStale + `
    and ` + condHasKey + `
  order by q.{lease_until}, q.{job_id}
  limit $2::bigint
) j on true
order by j.lease_until, j.key`
)

// sqlClaim locks and reads one batch of stale leases after a cursor, oldest first.
// Rows that another reaper or a worker has locked are skipped, not waited for.
// Served by job_queue_lease_until_idx, which finds the cursor too.
//
//	$1 scope
//	$2 limit        bigint
//	$3 lease_until  timestamptz of the cursor, NULL to begin at the oldest
//	$4 job id       of the key's type; NULL: after every job of that lease_until
const sqlClaim = `-- reaper.claim
select ` + claimColumns + `
from {queue} q
where ` + condStale + `
  and ` + condHasKey + `
  and q.{lease_until} >= coalesce($3::timestamptz, '-infinity')
  and ($3::timestamptz is null or q.{lease_until} > $3::timestamptz or q.{job_id} > $4)
order by q.{lease_until}, q.{job_id}
limit $2::bigint
for update of q skip locked`

// claimColumns are what scanClaim reads. {address} is the row's ctid, or NULL where
// rows are found by their keys alone.
const claimColumns = `q.{job_id}::text as id,
  {address} as address,
  {kind}::text as kind,
  q.{lease_owner}::text as owner,
  q.{lease_until} as lease_until,
  coalesce(q.{attempts}, 0)::bigint as attempts,
  ` + condAtEdge + ` as at_edge,
  ` + condExhausted + ` as exhausted`

// sqlExceedsMaxStale reads whether more leases are stale than an apply may find. It
// stops counting there. Served by job_queue_lease_until_idx.
//
//	$1 scope
//	$2 maximum  bigint
const sqlExceedsMaxStale = `-- reaper.overfull
select count(*) > $2::bigint
from (
  select
  from {queue} q
  where ` + condStale + `
  limit least($2::bigint, 9223372036854775806) + 1
) s`

// sqlPoll reads what a loop needs to know before it reaps or sleeps: whether a
// lease is stale, from a cursor on; how many microseconds are left until the next
// one is; the end up to which leases of every kind are stale now, which is the
// next cursor; and when the server started and whether it is a standby. Served by
// job_queue_lease_until_idx.
//
//	$1 scope
//	$2 lease_until  timestamptz of the cursor, NULL to begin at the oldest
const sqlPoll = `-- reaper.poll
select
  coalesce((
    select true
    from {queue} q
    where ` + condStale + `
      and ` + condHasKey + `
      and q.{lease_until} >= coalesce($2::timestamptz, '-infinity')
    order by q.{lease_until}
    limit 1
  ), false) as stale,
  (
    {due}
  )::bigint as due_micros,
  now() - {most_grace} as stale_before,
  now() as now,
  pg_postmaster_start_time() as started_at,
  (extract(epoch from now() - pg_postmaster_start_time()) * 1000000)::bigint as uptime_micros,
  pg_is_in_recovery() as standby`

// sqlNextExpiry is how many microseconds are left until the next lease is stale.
const sqlNextExpiry = `select extract(epoch from q.{lease_until} - (now() - {grace})) * 1000000
    from {queue} q
    where q.{state} = {leased}{only}
      and q.{lease_until} >= now() - {grace}
      and q.{lease_until} < now() + interval '1 day'
    order by q.{lease_until}
    limit 1`

// sqlNextExpiryByKind is sqlNextExpiry where the kinds have graces of their own, so that the
// next one is not the first of the index: it reads all live leases.
const sqlNextExpiryByKind = `select extract(epoch from min(q.{lease_until} + {kind_grace}) - now()) * 1000000
    from {queue} q
    where q.{state} = {leased}{only}
      and q.{lease_until} >= now() - {most_grace}
      and q.{lease_until} < now() + interval '1 day'
      and q.{lease_until} + {kind_grace} >= now()`
