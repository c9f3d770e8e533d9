package stmt

// sqlRehearse makes one row stale, a leased one if there is one that nobody has
// locked, and returns it as a claim does. Served by job_queue_lease_until_idx and the
// queue's key.
//
//	$1 scope
const sqlRehearse = `-- reaper.rehearse
update {queue} q
set {to_leased}{lease_until} = {start(}now() - {most_grace} - interval '1 second'{)start}
where q.{job_id} = coalesce(
    (
      select q.{job_id}
      from {queue} q
      where {is_leased} and ` + condHasKey + `{only}
      limit 1
      for update of q skip locked
    ),
    (
      select q.{job_id}
      from {queue} q
      where ` + condHasKey + `{only}
      limit 1
      for update of q skip locked
    )
  )
returning ` + claimColumns
