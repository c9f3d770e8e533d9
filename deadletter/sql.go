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
update {queue} set {state} = {dead_state} where {state} in ({held}) and now() is null`
)

// sqlList reads a page of letters, oldest first. It locks nothing. A moved_at or
// redriven_at that RFC 3339 has no form for is shown as the nearest that it has.
//
//	$1 limit   bigint
//	$2 filter
const sqlList = `-- deadletter.list
select
  d.dead_letter_id::text as dead_letter_id,
  d.job_id::text as job_id,
  coalesce(d.job_kind::text, '') as job_kind,
  coalesce(d.attempts, 0)::bigint as attempts,
  coalesce(d.max_attempts, 0)::bigint as max_attempts,
  coalesce(d.final_error::text, '') as final_error,
  coalesce(d.moved_by::text, '') as moved_by,
  least(greatest(d.moved_at, {first}), {last}) as moved_at,
  case when d.redriven_at is not null then least(greatest(d.redriven_at, {first}), {last}) end as redriven_at,
  d.redriven_by::text as redriven_by,
  {job} as document,
  to_jsonb(d.moved_at) #>> '{}' as place
from {dead_letter} d
where true{and}
order by d.moved_at, d.dead_letter_id
limit $1::bigint`

// The first and the last instant that RFC 3339 has a form for.
const (
	firstInstant = "timestamptz '0001-01-01 00:00:00Z'"
	lastInstant  = "timestamptz '9999-12-31 23:59:59.999999Z'"
)
