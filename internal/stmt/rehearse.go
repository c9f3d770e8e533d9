package stmt

import (
	"strings"

	"github.com/lease-governance/leasereaper/internal/mapping"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// sqlRehearseRow locks one row that nobody else has locked: a leased one if there is one,
// else one in another state than those given. It returns its key, whether it is leased,
// and its state. Served by job_queue_lease_until_idx, else by none.
//
//	$1 scope
//	$2 states  text[]
const sqlRehearseRow = `-- reaper.rehearse_row
select q.{job_id}::text, coalesce({is_leased}, false), {state_text}
from {queue} q
where {most_grace} is not null and q.{job_id} = coalesce(
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
      where ` + condHasKey + `{only} and {state_text} <> all($2::text[])
      limit 1
      for update of q skip locked
    )
  )`

// sqlRehearse makes that row stale and returns it as a claim does. Its attempts are changed
// unless they are those of a job that is reset, or moved: a CHECK may compare them with the
// maximum. A row that was not leased gets an owner, where a text can name one, as a CHECK
// may want one of leased rows. Served by the queue's key.
//
//	$1 scope
//	$2 moved   boolean
//	$3 job id  of the key's type
const sqlRehearse = `-- reaper.rehearse
update {queue} q
set {to_leased}{to_owner}{lease_until} = {start(}now() - {most_grace} - interval '1 second'{)start},
  {counter} = case
    when ` + condExhausted + ` = $2::boolean then q.{counter}
    when $2::boolean then coalesce(least({limit} - {step}, 32767), q.{counter})
    else 0
  end
where q.{job_id} = $3
returning ` + claimColumns

// toOwner assigns an owner. What a text or an array of texts is made of depends on the
// column's type, which only the server knows.
const toOwner = `{lease_owner} = case
    when not coalesce({is_leased}, false) and q.{lease_owner} is null
      and pg_typeof(q.{lease_owner}) in ('text'::regtype, 'varchar'::regtype, 'text[]'::regtype)
    then (jsonb_populate_record(null::{queue}, jsonb_build_object({owner_label}, '["rehearsal"]'::jsonb))).{lease_owner}
    else q.{lease_owner}
  end,
  `

// rehearsalNames adds what the rehearsal's statements need besides.
func rehearsalNames(n *pgtext.Names, q mapping.Queue) {
	state, owner := "''::text", ""
	if q.State != "" {
		name, _ := pgtext.Name([]string{q.State}) // its fault is reported already, as below
		state = "coalesce(q." + name + "::text, '')"
	}
	if q.LeaseOwner != "" {
		name, _ := pgtext.Name([]string{q.LeaseOwner})
		label, _ := pgtext.Label(q.LeaseOwner)
		pairs := append([]string{"{lease_owner}", name, "{owner_label}", label}, n.Pairs...)
		owner = strings.NewReplacer(pairs...).Replace(toOwner)
	}
	n.Add("state_text", state)
	n.Add("to_owner", owner)
}
