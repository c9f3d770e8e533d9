package stmt

// sqlRehearse makes one row stale, a leased one if there is one that nobody has
// locked, and returns it as a claim does. Its attempts are changed unless they are those
// of a job that is reset, or moved: a CHECK may compare them with the maximum. Served by
// job_queue_lease_until_idx and the queue's key.
//
//	$1 scope
//	$2 moved  boolean
const sqlRehearse = `-- reaper.rehearse
update {queue} q
set {state} = {leased},
  {lease_until} = now() - {most_grace} - interval '1 second',
  {attempts} = case
    when ` + condExhausted + ` = $2::boolean then q.{attempts}
    when $2::boolean then coalesce(least(q.{max_attempts} - 1, 32767), q.{attempts})
    else 0
  end
where q.{job_id} = coalesce(
    (
      select q.{job_id}
      from {queue} q
      where q.{state} = {leased} and ` + condHasKey + `{only}
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
