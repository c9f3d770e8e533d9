// Package letter has the SQL that stores jobs in a dead-letter table, and the call of a
// function that does so, for the reaper and for the movers of package deadletter.
package letter

import (
	"bytes"
	"encoding/json"
	"strings"
)

// DefaultTable is the dead-letter table when no other is configured.
const DefaultTable = "job_dead_letter"

// Match is the condition that finds q, a row of the queue, for u, a job of the
// parameters. It uses the parameter $1.
type Match string

// ByKey finds the rows of a batch that a mover is given. $1 is a NULL text.
const ByKey Match = `q.{job_id} = u.job_id and $1::text is null`

// Document is the expression of a letter's job, the queue's row with the attempts
// that are stored.
type Document string

const (
	// JSONB is for a column of type jsonb.
	JSONB Document = `to_jsonb(q.*) || jsonb_build_object({counter_label}, u.attempts)`

	// JSON is for a column of type json or text. The values of json columns keep
	// their text, such as numbers beyond the range of jsonb's and \u0000.
	JSON Document = `to_json(json_populate_record(q.*, json_build_object({counter_label}, u.attempts)))`
)

// SQLIsJSONB is a subquery: whether the column job of a dead-letter table is a jsonb.
// It reads the catalog alone.
//
//	$1 schema  text, NULL for the search path
//	$2 table   text
const SQLIsJSONB = `select exists (
  select from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid
  where c.relname = $2::text and a.attname = 'job' and a.atttypid = 'jsonb'::regtype
    and case when $1::text is null then pg_table_is_visible(c.oid) else n.nspname = $1::text end
)`

// insert copies queue rows into the dead-letter table, with the attempts that are
// given. The empty subquery lends the array of ids the type of the queue's key.
// The star in q.* makes the row of q, also where a column is called q. Without a
// maximum, the attempts are it.
//
//	$1 for the match
//	$2 job ids      array of the key's type
//	$3 final error  text
//	$4 actor        text
//	$5 addresses    tid[], empty where jobs are found by their keys
//	$6 attempts     bigint[]
const insert = `insert into {letters}
  (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
select q.{job_id}, {kind}, {letter_attempts},
  coalesce({maximum}, {letter_attempts}), $3::text, $4::text,
  {document}
from unnest(
  array_cat(array(select k.{job_id} from {queue} k where false), $2),
  $5::tid[], $6::bigint[]
) as u(job_id, address, attempts)
join {queue} q on {match}
returning job_id::text, dead_letter_id::text`

// Insert is the statement that stores jobs. The placeholders in it are
//
//	{letters}         the dead-letter table
//	{queue}           the queue
//	{job_id}          its columns
//	{kind}             q and the column of kinds, or an empty literal
//	{letter_attempts}  the attempts, of q or u
//	{maximum}          the maximum of attempts of q, or NULL
//	{counter_label}    the name of the column that a reap counts in, as a literal
func Insert(match Match, document Document) string {
	return `-- deadletter.insert
` + fill(insert, match, document)
}

// InsertChecked is Insert that fails, by a division by zero, unless each job is
// stored once under its own id. Both lists of ids are sorted, as a comparison of
// each with each would be quadratic.
func InsertChecked(match Match, document Document) string {
	return `-- deadletter.insert_checked
with stored as (
` + fill(insert, match, document) + `
)
select s.job_id, s.dead_letter_id
from (
  select 1 / (
    array(select job_id from stored order by job_id collate "C")
    = array(select id from unnest($2::text[]) id order by id collate "C")
  )::int as checked
) c
join stored s on c.checked = 1`
}

func fill(sql string, match Match, document Document) string {
	return strings.NewReplacer("{match}", string(match), "{document}", string(document)).Replace(sql)
}

// Receipt is the document of the receipt of a stored job.
type Receipt struct {
	DeadLetterID string `json:"dead_letter_id"`
	JobID        string `json:"job_id"`
	State        string `json:"state"`
	Refused      bool   `json:"refused"`
	Attempts     int    `json:"attempts"`
	FinalError   string `json:"final_error"`
}

// JSON returns the document.
func (r Receipt) JSON() json.RawMessage {
	r.State = "dead_letter"
	document, _ := json.Marshal(r) // texts and an integer cannot fail
	return document
}

// IsReceipt reports whether a document is what a receipt may hold: a JSON object, or
// nothing.
func IsReceipt(document json.RawMessage) bool {
	return len(document) == 0 || json.Valid(document) && bytes.HasPrefix(bytes.TrimSpace(document), []byte("{"))
}
