package console

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/mapped"
)

// statements are the console's own, with the names of a database. A q is a row of the
// queue, and a d a dead letter.
type statements struct {
	expiries, letters, job, states, stamps string
}

// sqlExpiries reads the leases that expire next. Served by the index on the lease's end,
// or on its start; with a column of seconds it reads all leased rows.
//
//	$1 limit   bigint
//	$2 kinds   text[], NULL for all
//	$3 except  text[], kinds that are left out
const sqlExpiries = `-- console.expiries
select coalesce({kind}::text, '') as kind,
  {owner} as owner,
  q.{job_id}::text as job_id,
  {end} as lease_until,
  extract(epoch from {end} - now())::float8 as seconds
from {queue} q
where {is_leased}{only_columns}
  and {key} >= {key(}now(){)key}
  and {key} < {key(}'infinity'::timestamptz{)key}
  and ($2::text[] is null or coalesce({kind}::text, '') = any($2::text[]))
  and coalesce({kind}::text, '') <> all(coalesce($3::text[], '{}'))
order by {key}
limit $1::bigint`

// sqlLetters counts dead letters up to a bound, and among those the ones that were not
// redriven. In a table of their own it reads no more rows than that; in place it reads
// the queue until it has found as many.
//
//	$1 bound  bigint
const sqlLetters = `-- console.letters
select count(*) as letters, count(*) filter (where x.redriven_at is null) as unredriven
from (select d.redriven_at from {letters} d limit $1::bigint) x`

// sqlJob reads the queue row of a job. Served by the key.
//
//	$1 job id  text of the key's type
const sqlJob = `-- console.job
select q.{job_id}::text as job_id,
  coalesce({kind}::text, '') as kind,
  {status} as state,
  q.{attempts}::bigint as attempts,
  {maximum}::bigint as max_attempts,
  to_jsonb({scheduled}) #>> '{}' as scheduled_at,
  case when {is_leased} then {owner} end as owner,
  case when {is_leased} then to_jsonb({end}) #>> '{}' end as lease_until,
  {error} as last_error
from {queue} q
where q.{job_id} = $1
limit 1`

// sqlStates reads the letters among some whose job is not in the state of dead letters,
// so that a redrive would skip them. Served by both keys.
//
//	$1 dead letter ids  array of the key's type
const sqlStates = `-- console.states
select d.dead_letter_id::text as dead_letter_id, d.job_id::text as job_id, {status} as state
from {letters} d
join {queue} q on q.{job_id} = d.job_id
where d.dead_letter_id = any($1) and {is_dead} is not true`

// sqlInPlace has the dead rows of a queue in the form of letters.
const sqlInPlace = `(
  select q.{job_id} as dead_letter_id, q.{job_id} as job_id, null::timestamptz as redriven_at
  from {queue} q
  where {is_dead}{only_dead}
)`

// sqlStamps reads the clock, and who changed settings and when, where the table has
// that. Served by the key.
//
//	$1 keys  text[]
const sqlStamps = `-- console.stamps
select c.key,
  (to_jsonb(c) ->> 'updated_at')::timestamptz as updated_at,
  to_jsonb(c) ->> 'updated_by' as updated_by
from {settings} c
where c.key = any($1::text[])`

// statements renders the console's own SQL for the mapped names.
func (d *database) statements() (statements, error) {
	queue := mapped.Queue(d.cfg.Reaper.Queue)
	n := queue.Names()
	status, lastError := "q.{state}::text", "null::text"
	if queue.State == "" {
		status = "case when {is_dead} then 'dead' when {is_leased} then 'leased' else 'waiting' end"
	}
	if queue.LastError != "" {
		lastError = "q." + n.Column("last", queue.LastError) + "::text"
	}
	letters, settings := pgx.Identifier{"job_dead_letter"}, pgx.Identifier{"queue_config"}
	if d.store != nil && len(d.store.Table.Name) > 0 {
		letters = d.store.Table.Name
	}
	if d.settings != nil && len(d.settings.Name) > 0 {
		settings = d.settings.Name
	}
	n.Name("settings", settings)
	in := strings.NewReplacer(n.Pairs...).Replace
	n.Add("status", in(status))
	n.Add("error", lastError)
	if d.InPlace() {
		n.Add("letters", in(sqlInPlace))
	} else {
		n.Name("letters", letters)
	}
	in = strings.NewReplacer(n.Pairs...).Replace
	return statements{
		expiries: in(sqlExpiries), letters: in(sqlLetters), job: in(sqlJob), states: in(sqlStates),
		stamps: in(sqlStamps),
	}, errors.Join(n.Faults...)
}
