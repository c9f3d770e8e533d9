package stmt

import (
	"strings"
)

// The statements that reset and move jobs. The claim holds the rows' locks; each
// repeats the condition that it was decided on all the same. {match} finds q, a row
// of the queue, for u, a job of the parameters.

// Ways to find a claimed row. By address the server reads just that row, and rows
// that share an id are told apart. A view has no addresses, those of a partitioned
// table repeat in each partition, and a trigger may move a row; then it is found by
// its key.
const (
	matchAddress = `q.ctid = u.address and q.{job_id} = u.job_id`
	matchKey     = `q.{job_id} = u.job_id`
)

// sqlReset gives claimed jobs back to the queue. Of each row that it changed it
// returns the job's place in the batch, what is stored as scheduled_at, and whether
// the row is as it was written, which a trigger may have prevented.
//
//	$1 scope
//	$2 last error  text; the condition uses it for queues that do not store it
//	$3 job ids     array of the key's type
//	$4 addresses   tid[], empty where rows are found by their keys
//	$5 attempts    bigint[], the bumped ones
//	$6 delays      bigint[], seconds
const sqlReset = `-- reaper.reset
update {queue} q
set {set_reset}
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $3),
  $4::tid[], $5::bigint[], $6::bigint[]
) with ordinality as u(job_id, address, attempts, delay_sec, n)
where {match}
  and ` + condStaleByKey + `
  and $2::text is not null
returning u.n, {scheduled} as scheduled_at,
  {is_reset} and {counted} and q.{scheduled_at} is not null as as_written`

// sqlClose takes moved jobs out of the queue, after their dead letters were stored,
// and returns what sqlReset returns but for the time.
//
//	$1 to $5 as of sqlReset
const sqlClose = `-- reaper.close
update {queue} q
set {set_close}
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $3),
  $4::tid[], $5::bigint[]
) with ordinality as u(job_id, address, attempts, n)
where {match}
  and ` + condStaleByKey + `
  and $2::text is not null
returning u.n,
  {is_closed} and {counted} as as_written`

// checked makes sqlReset or sqlClose fail, by a division by zero, unless each job
// was written once and as it was meant. A commit that travels with it is then not
// made. The statement keeps its name.
func checked(sql string) string {
	name, body, _ := strings.Cut(sql, "\n")
	return name + `
with written as (
` + body + `
)
select w.*
from (
  select 1 / (count(*) filter (where as_written) = cardinality($5::bigint[])
    and count(distinct n) = cardinality($5::bigint[]))::int as checked
  from written
) c
join written w on c.checked = 1`
}

// sqlBump counts the failed attempt of jobs that a function in the database, or a
// mover of the caller's, moves: it is promised rows with the bumped attempts.
//
//	$1 scope
//	$2 job ids    array of the key's type
//	$3 addresses  tid[], empty where rows are found by their keys
//	$4 attempts   bigint[], the bumped ones
const sqlBump = `-- reaper.bump
update {queue} q
set {counter} = u.attempts
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $2),
  $3::tid[], $4::bigint[]
) with ordinality as u(job_id, address, attempts, n)
where {match}
  and ` + condStaleByKey + `
returning u.n, {is_leased} and {counted} as as_written`

// sqlCloseMoved takes jobs out of the queue that such a mover has moved, unless it
// did so itself. Of each row that it changed it returns the id, and whether the row is as
// it was written. The condition, with the attempts that were bumped, keeps it from other
// jobs of the same id, in a queue whose ids are not unique. Served by the queue's key.
//
//	$1 scope
//	$2 last error  text; the condition uses it for queues that do not store it
//	$3 job ids     array of the key's type
//	$4 attempts    bigint[], the bumped ones
const sqlCloseMoved = `-- reaper.close_moved
update {queue} q
set {set_closed}
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $3),
  $4::bigint[]
) as u(job_id, attempts)
where q.{job_id} = u.job_id
  and {counted}
  and ` + condStaleByKey + `
  and $2::text is not null
returning q.{job_id}::text,
  coalesce({is_closed} and {counted}, false) as as_written`

// sqlLeft is sqlCloseMoved for a queue that cannot tell a moved job from a free one: it
// writes nothing, and returns the jobs that the mover has not removed.
const sqlLeft = `-- reaper.left
select q.{job_id}::text, false as as_written
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $3),
  $4::bigint[]
) as u(job_id, attempts)
join {queue} q on q.{job_id} = u.job_id
where {counted}
  and ` + condStaleByKey + `
  and $2::text is not null`

// sqlUnclosed reads which of the moved jobs are still leased: a trigger prevented
// the close, or the mover wrote another lease. Served by the queue's key.
//
//	$1 job ids  array of the key's type
const sqlUnclosed = `-- reaper.unclosed
select q.{job_id}::text
from {queue} q
where q.{job_id} = any($1)
  and {is_leased}`
