package deadletter

// sqlPurge locks and reads a batch of letters that are old enough, oldest first.
// Those that someone else has locked are passed, not waited for.
//
//	$1 limit       bigint
//	$2 older than  bigint, microseconds
//	$3 filter      a place, and more for redriven ones
const sqlPurge = `-- deadletter.purge
select d.dead_letter_id::text as dead_letter_id,
  d.job_id::text as job_id,
  to_jsonb(d.moved_at) #>> '{}' as place
from {dead_letter} d
where d.moved_at < now() - $2::bigint * interval '1 microsecond'{and}
order by d.moved_at, d.dead_letter_id
limit $1::bigint
for update skip locked`

// redrivenBefore is what a purge of redriven letters asks for beside. Their age
// counts from the redrive too.
const redrivenBefore = "d.redriven_at < now() - $2::bigint * interval '1 microsecond'"

// sqlPurgeLetters removes letters, as they were locked, and returns their keys.
// Served by the letters' key.
//
//	$1 dead letter ids  array of the key's type
const sqlPurgeLetters = `-- deadletter.purge_letters
delete from {dead_letter} d
where d.dead_letter_id = any($1)
returning d.dead_letter_id::text`

// sqlPurgeJobs removes the queue rows of dead jobs, as they were locked, that have
// no unredriven letter any more. Served by the queue's key and the index on job_id.
//
//	$1 job ids  array of the key's type
const sqlPurgeJobs = `-- deadletter.purge_jobs
delete from {queue} q
using ` + ofQueue + `
where q.{job_id} = u.job_id
  and q.{state} = {dead_state}
  and not exists (
    select from {dead_letter} d
    where d.job_id = q.{job_id}
      and d.redriven_at is null
  )
returning u.n`

// sqlPurgeLeft reads which queue rows of dead jobs are there still and have no
// unredriven letter any more: a trigger kept them. Served like sqlPurgeJobs.
//
//	$1 job ids  array of the key's type
const sqlPurgeLeft = `-- deadletter.purge_left
select u.n
from ` + ofQueue + `
join {queue} q on q.{job_id} = u.job_id
where q.{state} = {dead_state}
  and not exists (
    select from {dead_letter} d
    where d.job_id = q.{job_id}
      and d.redriven_at is null
  )`
