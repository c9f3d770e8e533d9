package stmt

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
    {owner} as lease_owner,
    {end} as lease_until,
    coalesce(q.{attempts}, 0)::bigint as attempts,
    coalesce({maximum}, 9223372036854775807)::bigint as max_attempts,
    case when {end} = '-infinity' then 9223372036854775807
      else floor(extract(epoch from now() - {end}))::bigint
    end as overdue_seconds,
    ` + condExhausted + ` as exhausted
  from {queue} q
  where ` + condStale + `
    and ` + condHasKey + `
  order by {key}, q.{job_id}
  limit $2::bigint
) j on true
order by j.lease_until, j.key`
)

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
