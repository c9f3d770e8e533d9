// Package letter has the SQL that stores jobs in a dead-letter table or calls a function
// that does so. The reaper and the movers of package deadletter use it.
package letter

import (
	"bytes"
	"encoding/json"
	"strings"
)

// DefaultTable is the name of the dead-letter table unless it is configured.
const DefaultTable = "job_dead_letter"

// Match is the condition that joins q, a row of the queue, to u, a job of the
// parameters. It uses the parameter $1.
type Match string

// ByKey finds the rows by their keys. $1 is a NULL text.
const ByKey Match = `q.{job_id} = u.job_id and $1::text is null`

// Document is the expression of a letter's column job: the row of the queue, with the
// letter's attempts.
type Document string

const (
	// JSONB is for a column of type jsonb.
	JSONB Document = `to_jsonb(q.*) || jsonb_build_object({counter_label}, u.attempts)`

	// JSON is for a column of type json or text. It keeps the text of json values, such
	// as \u0000 and numbers outside the range of jsonb.
	JSON Document = `to_json(json_populate_record(q.*, json_build_object({counter_label}, u.attempts)))`
)

// SQLIsJSONB is a subquery that reads from the catalog whether the column job of a
// dead-letter table is of type jsonb.
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

// insert copies rows of the queue into the dead-letter table, with the given attempts.
// The empty subquery gives the array of ids the type of the queue's key. q.* is the row,
// also if a column is called q. A NULL max_attempts becomes the attempts.
//
//	$1 for the match
//	$2 job ids      array of the key's type
//	$3 final error  text
//	$4 actor        text
//	$5 addresses    tid[], empty if the match is by key
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

// Insert returns the statement that stores jobs. Its placeholders are
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

// InsertChecked returns Insert with a check: it divides by zero unless each job is stored
// once, under its own id. Both lists of ids are sorted, since a comparison of all pairs
// would be quadratic.
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

// Receipt is the document that reports a stored job.
type Receipt struct {
	DeadLetterID string `json:"dead_letter_id"`
	JobID        string `json:"job_id"`
	State        string `json:"state"`
	Refused      bool   `json:"refused"`
	Attempts     int    `json:"attempts"`
	FinalError   string `json:"final_error"`
}

// JSON returns the document as JSON, with the state dead_letter.
func (r Receipt) JSON() json.RawMessage {
	r.State = "dead_letter"
	document, _ := json.Marshal(r) // strings, a boolean and an integer cannot fail
	return document
}

// IsReceipt reports whether a document is empty or a JSON object.
func IsReceipt(document json.RawMessage) bool {
	return len(document) == 0 || json.Valid(document) && bytes.HasPrefix(bytes.TrimSpace(document), []byte("{"))
}
