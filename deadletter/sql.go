package deadletter

// Placeholders in braces are names and literals of the store, quoted already,
// and {and} is what a filter asks for. The parameters of a filter come behind
// the statement's own. Keys are parameters of the key's own type; they travel as
// texts.
//
// All of these are over the letters in the order of moved_at, dead_letter_id; an
// index on the two serves it, and one on job_id what is asked by job.

// The two statements below take the locks on a table, and on those of its partitions
// that the writes may need, and do nothing else: EXPLAIN runs no trigger, and the
// planner takes now() for unknown, so that it leaves no partition out for it. So what
// holds up a table, an index that is being made, say, is told from what holds up a job.
const (
	sqlHoldLetters = `explain -- deadletter.hold_letters
update {dead_letter} set redriven_at = null where now() is null`

	// {held} are the states of the rows that are written.
	sqlHoldQueue = `explain -- deadletter.hold_queue
update {queue} q set {touch} where {held}now() is null`
)

// letterKeys are the fields of a letterKey.
const letterKeys = `
select d.dead_letter_id::text as dead_letter_id,
  d.job_id::text as job_id,
  to_jsonb(d.moved_at) #>> '{}' as instant
from {dead_letter} d`

// sqlRedrive locks and reads the letters to redrive, oldest first. Those that
// someone else has locked are passed, not waited for.
//
//	$1 limit   bigint
//	$2 filter
const sqlRedrive = `-- deadletter.redrive` + letterKeys + `
where d.redriven_at is null{and}
order by d.moved_at, d.dead_letter_id
limit $1::bigint
for no key update skip locked`

// sqlPassed reads why letters that were asked for by id are not among the locked
// ones: those behind one cursor and up to another, where there are such. It locks
// nothing. Served by the letters' key. The empty subquery lends the array the
// type of that key.
//
//	$1 dead letter ids  array of the key's type
//	$2 locked ones      array of the key's type
//	$3 moved_at         timestamptz, behind this cursor, NULL for none
//	$4 dead letter id   likewise
//	$5 moved_at         timestamptz, up to this cursor, NULL for none
//	$6 dead letter id   likewise
//	$7 filter
const sqlPassed = `-- deadletter.passed
select u.id::text as dead_letter_id,
  coalesce(d.job_id::text, '') as job_id,
  case
    when d.dead_letter_id is null then 'not_found'
    when d.redriven_at is not null then 'already_redriven'
    when not (true{and}) then 'filtered_out'
    else 'locked'
  end as reason
from unnest(array_cat(array(select k.dead_letter_id from {dead_letter} k where false), $1))
  with ordinality as u(id, n)
left join {dead_letter} d on d.dead_letter_id = u.id
where not (u.id = any($2))
  and case
    when d.dead_letter_id is null then $3::timestamptz is null
    else ($3::timestamptz is null or (d.moved_at, d.dead_letter_id) > ($3::timestamptz, $4))
      and ($5::timestamptz is null or (d.moved_at, d.dead_letter_id) <= ($5::timestamptz, $6))
  end
order by u.n`

// Jobs by key, with their numbers in the array from 1, which the statements below
// return. The empty subquery gives the array the type of the key.
const (
	ofLetters = `unnest(array_cat(array(select k.job_id from {dead_letter} k where false), $1))
  with ordinality as u(job_id, n)`

	ofQueue = `unnest(array_cat(array(select k.{job_id} from {queue} k where false), $1))
  with ordinality as u(job_id, n)`
)

// sqlUnredriven locks and reads all unredriven letters of jobs, each job's newest
// first. Served by the index on job_id.
//
//	$1 job ids  array of the key's type
const sqlUnredriven = `-- deadletter.unredriven
select u.n, d.dead_letter_id::text
from ` + ofLetters + `
join {dead_letter} d on d.job_id = u.job_id
where d.redriven_at is null
order by d.moved_at desc, d.dead_letter_id desc
for no key update of d skip locked`

// sqlCount counts the unredriven letters of jobs, those that someone else has
// locked included. Served by the index on job_id.
//
//	$1 job ids  array of the key's type
const sqlCount = `-- deadletter.count
select u.n, count(*)
from ` + ofLetters + `
join {dead_letter} d on d.job_id = u.job_id
where d.redriven_at is null
group by u.n`

// sqlDead locks the queue rows of dead jobs. Served by the queue's key.
//
//	$1 job ids  array of the key's type
const sqlDead = `-- deadletter.dead
select u.n
from ` + ofQueue + `
join {queue} q on q.{job_id} = u.job_id
where {is_dead}
for no key update of q skip locked`

// sqlRows reads the queue rows of jobs, and whether they are dead. Served by the
// queue's key.
//
//	$1 job ids  array of the key's type
const sqlRows = `-- deadletter.rows
select u.n, coalesce({is_dead}, false)
from ` + ofQueue + `
join {queue} q on q.{job_id} = u.job_id`

// sqlRevive sends queue rows of dead jobs back to the queue, as sqlDead has
// locked them; the number is NULL for one that a trigger put into another state.
// Served by the queue's key.
//
//	$1 job ids  array of the key's type
//	$2 waits    bigint[], microseconds until each job is to run
const sqlRevive = `-- deadletter.revive
update {queue} q
set {set_requeue}
from ` + ofQueue + `
where q.{job_id} = u.job_id
  and {is_dead}
returning case when {is_requeued} then u.n end`

// sqlMark marks letters, as they were locked, and returns their keys. Served by
// the letters' key.
//
//	$1 dead letter ids  array of the key's type
//	$2 actor            text
const sqlMark = `-- deadletter.mark
update {dead_letter} d
set redriven_at = now(),
  redriven_by = $2::text
where d.dead_letter_id = any($1)
  and d.redriven_at is null
returning d.dead_letter_id::text`

// sqlPurge locks and reads a batch of letters that are old enough, oldest first.
// Those that someone else has locked are passed, not waited for.
//
//	$1 limit       bigint
//	$2 older than  bigint, microseconds
//	$3 filter      a cursor, and more for redriven ones
const sqlPurge = `-- deadletter.purge` + letterKeys + `
where d.moved_at < now() - $2::bigint * interval '1 microsecond'{and}
order by d.moved_at, d.dead_letter_id
limit $1::bigint
for update skip locked`

// sqlPurgeLetters removes letters, as they were locked, and returns their keys.
// Served by the letters' key.
//
//	$1 dead letter ids  array of the key's type
//	$2 unredriven       boolean, whether they are
const sqlPurgeLetters = `-- deadletter.purge_letters
delete from {dead_letter} d
where d.dead_letter_id = any($1)
  and (d.redriven_at is null) = $2::boolean
returning d.dead_letter_id::text`

// ofBoth are jobs by key, as the queue has it and as the letters do, whose type may be
// another.
const ofBoth = `unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $1),
  array_cat(array(select k.job_id from {dead_letter} k where false), $2)
) with ordinality as u(job_id, letter_job_id, n)`

// deadWithoutLetter is a queue row of a dead job that has no unredriven letter.
const deadWithoutLetter = `{is_dead}{without_letter}`

// withoutLetter is a further condition where the letters are in a table of their own.
const withoutLetter = `
  and not exists (
    select from {dead_letter} d
    where d.job_id = u.letter_job_id
      and d.redriven_at is null
  )`

// sqlPurgeJobs removes the queue rows of dead jobs, as they were locked, that have
// no unredriven letter any more. Served by the queue's key and the index on job_id.
//
//	$1 job ids  array of the key's type
//	$2 job ids  array of the type of the letters' job_id
const sqlPurgeJobs = `-- deadletter.purge_jobs
delete from {queue} q
using ` + ofBoth + `
where q.{job_id} = u.job_id
  and ` + deadWithoutLetter + `
returning u.n`

// sqlPurgeLeft reads which of these rows are there still: a trigger kept them. Served
// like sqlPurgeJobs.
//
//	$1 job ids  array of the key's type
//	$2 job ids  array of the type of the letters' job_id
const sqlPurgeLeft = `-- deadletter.purge_left
select u.n
from ` + ofBoth + `
join {queue} q on q.{job_id} = u.job_id
where ` + deadWithoutLetter
