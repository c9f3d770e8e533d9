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
set {to_leased}{lease_until} = {start(}now() - {most_grace} - interval '1 second'{)start},
  {counter} = case
    when ` + condExhausted + ` = $2::boolean then q.{counter}
    when $2::boolean then coalesce(least({limit} - {step}, 32767), q.{counter})
    else 0
  end
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
