package stmt

import (
	"strings"
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
  and {key} >= {key(}coalesce($3::timestamptz, '-infinity'){)key}
  and ($3::timestamptz is null or {key} > {key(}$3::timestamptz{)key} or q.{job_id} > $4)
order by {key}, q.{job_id}
limit $2::bigint
for update of q skip locked`

// claimColumns are what scanClaim reads. {address} is the row's ctid, or NULL where
// rows are found by their keys alone.
const claimColumns = `q.{job_id}::text as id,
  {address} as address,
  {kind}::text as kind,
  {owner} as owner,
  {end} as lease_until,
  coalesce(q.{attempts}, 0)::bigint as attempts,
  {at_edge} as at_edge,
  ` + condExhausted + ` as exhausted{lost}`

// sqlNotRejected is a further condition of a claim: the job was not rejected, or
// its lease ends later than it did then. The document is searched once a row, in
// logarithmic time, so a claim that leaves out thousands goes on through its index.
//
//	$5 rejected  jsonb, by job id a time that the lease had ended before
const sqlNotRejected = `
  and {key} >= {key(}coalesce(($5::jsonb ->> q.{job_id}::text)::timestamptz, '-infinity'){)key}`

// sqlClaimNotRejected is sqlClaim with sqlNotRejected.
var sqlClaimNotRejected = strings.Replace(sqlClaim, "\norder by", sqlNotRejected+"\norder by", 1)

// asPlanned is true of a queue row that stands as a plan has it.
const asPlanned = `{end} = p.lease_until
    and {owner} is not distinct from p.lease_owner
    and coalesce(q.{attempts}, 0) = p.attempts
    and ` + condExhausted + ` = p.moves`

// sqlClaimPlan locks and reads those jobs of a plan that are stale and stand as
// planned, oldest lease first. Rows that someone else has locked are skipped.
// Served by the queue's key.
//
//	$1 scope
//	$2 job ids     array of the key's type
//	$3 lease ends  timestamptz[]
//	$4 owners      text[]
//	$5 attempts    bigint[], as they stand
//	$6 moves       boolean[], whether the attempts are used up
const sqlClaimPlan = `-- reaper.claim_plan
select ` + claimColumns + `
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $2),
  $3::timestamptz[], $4::text[], $5::bigint[], $6::boolean[]
) as p(job_id, lease_until, lease_owner, attempts, moves)
join {queue} q on q.{job_id} = p.job_id
where ` + condStaleByKey + `
  and ` + asPlanned + `
order by {key}, q.{job_id}
for update of q skip locked`

// sqlSkipReasons says of each job of a plan why it was not claimed, if it was not; that
// its row is locked is what is left when it stands as planned. Served by the
// queue's key.
//
//	$1 scope
//	$2 last errors  text[], the reaper's; the condition uses it for queues that do not store them
//	$3 job ids      array of the key's type
//	$4 lease ends   timestamptz[]
//	$5 owners       text[]
//	$6 attempts     bigint[], as they stood
//	$7 moves        boolean[], whether the attempts were used up
const sqlSkipReasons = `-- reaper.drift
select p.n, coalesce(q.{job_id}::text, ''), case
  when q.{job_id} is null then 'gone'
  when {is_leased} and ` + asPlanned + `
    then case when ` + condStaleByKey + ` then 'locked' else 'not_stale' end
  when {is_leased} and {owner} is not distinct from p.lease_owner
    then case
      when {end} = p.lease_until then 'changed'
      when coalesce(q.{attempts}, 0) = p.attempts then 'renewed'
      else 'claimed'
    end
  when {is_leased} then 'claimed'
  when ({is_reset} or {is_closed}) and {counted_once}{reaped} then 'reaped'
  else 'finished'
end
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $3),
  $4::timestamptz[], $5::text[], $6::bigint[], $7::boolean[]
) with ordinality as p(job_id, lease_until, lease_owner, attempts, moves, n)
left join {queue} q on q.{job_id} = p.job_id
where $2::text[] is not null
order by p.n`
