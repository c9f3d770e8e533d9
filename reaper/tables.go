package reaper

import (
	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/letter"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// tables is what decides how rows are found and letters are stored. It is read from
// the catalog before the first claim, and again after an error, since the tables may
// have been altered. Nothing depends on it but speed, and that rows which share an id
// are told apart.
type tables struct {
	plain bool // the queue is a plain table, so that a row's address finds it
	jsonb bool // the letters' column job is a jsonb
	code  bool // a write may run code of the caller's: one of them has a trigger, or is no plain table
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

// queueTables queues the questions.
func (r *Reaper) queueTables(batch *pgx.Batch, known *tables) {
	queue := func(table pgx.Identifier, plain *bool) {
		batch.Queue(sqlIsPlain, pgtext.Parts(table)...).QueryRow(func(row pgx.Row) error {
			var code bool
			err := row.Scan(plain, &code)
			known.code = known.code || code
			return err
		})
	}
	queue(r.cfg.Queue.Name, &known.plain)
	if r.letters != nil {
		queue(r.letters, new(bool))
		batch.Queue(sqlIsJSONB, pgtext.Parts(r.letters)...).QueryRow(func(row pgx.Row) error {
			return row.Scan(&known.jsonb)
		})
	}
}
