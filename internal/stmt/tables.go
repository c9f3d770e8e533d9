package stmt

import (
	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/letter"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Tables is what decides how rows are found and letters are stored. It is read from
// the catalog before the first claim, and again after an error, since the tables may
// have been altered. Nothing depends on it but speed, and that rows which share an id
// are told apart.
type Tables struct {
	Plain bool // the queue is a plain table, so that a row's address finds it
	JSONB bool // the letters' column job is a jsonb
	Code  bool // a write may run code of the caller's: one of them has a trigger, or is no plain table

	Zoneless *bool // whether the time to run has no time zone; nil: it is no timestamp, or not known
}

// sqlIsPlain reads whether a table is a plain one, and whether a write to it may run
// code of the user's.
//
//	$1 schema  text, NULL for the search path
//	$2 table   text
const sqlIsPlain = `-- reaper.is_plain
select coalesce(bool_and(c.relkind = 'r'), false) as plain,
  coalesce(bool_or(
    c.relkind <> 'r' or exists (select from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal)
  ), false) as code
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relname = $2::text
  and case when $1::text is null then pg_table_is_visible(c.oid) else n.nspname = $1::text end`

// sqlIsJSONB reads whether the letters' documents are of type jsonb.
const sqlIsJSONB = `-- reaper.is_jsonb
` + letter.SQLIsJSONB

// sqlIsZoneless reads whether a column is a timestamp without time zone. It reads no row
// for a column of another type.
//
//	$1 schema  text, NULL for the search path
//	$2 table   text
//	$3 column  text
const sqlIsZoneless = `-- reaper.is_zoneless
with recursive below as (
  select a.atttypid as type
  from pg_attribute a
  join pg_class c on c.oid = a.attrelid
  join pg_namespace n on n.oid = c.relnamespace
  where c.relname = $2::text
    and a.attname = $3::text
    and case when $1::text is null then pg_table_is_visible(c.oid) else n.nspname = $1::text end
  union all
  select t.typbasetype
  from below b
  join pg_type t on t.oid = b.type and t.typtype = 'd'
)
select type = 'timestamp'::regtype
from below
where type in ('timestamp'::regtype, 'timestamptz'::regtype)`

// Queue queues the reading of what is known of a queue and of the table of its dead
// letters, which is nil for another mover.
func (known *Tables) Queue(batch *pgx.Batch, queue, letters pgx.Identifier) {
	read := func(table pgx.Identifier, plain *bool) {
		batch.Queue(sqlIsPlain, pgtext.Parts(table)...).QueryRow(func(row pgx.Row) error {
			var code bool
			err := row.Scan(plain, &code)
			known.Code = known.Code || code
			return err
		})
	}
	read(queue, &known.Plain)
	if letters != nil {
		read(letters, new(bool))
		batch.Queue(sqlIsJSONB, pgtext.Parts(letters)...).QueryRow(func(row pgx.Row) error {
			return row.Scan(&known.JSONB)
		})
	}
}

// QueueZone queues the reading of what is known of the queue's column of the time to run.
func (known *Tables) QueueZone(batch *pgx.Batch, queue pgx.Identifier, scheduledAt string) {
	batch.Queue(sqlIsZoneless, append(pgtext.Parts(queue), scheduledAt)...).Query(func(rows pgx.Rows) error {
		var zoneless bool
		_, err := pgx.ForEachRow(rows, []any{&zoneless}, func() error {
			known.Zoneless = &zoneless
			return nil
		})
		return err
	})
}
