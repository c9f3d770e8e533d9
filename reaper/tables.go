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
}

// sqlIsPlain reads whether the queue is a plain table.
//
//	$1 schema  text, NULL for the search path
//	$2 queue   text
const sqlIsPlain = `-- reaper.is_plain
select exists (
  select from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  where c.relname = $2::text and c.relkind = 'r'
    and case when $1::text is null then pg_table_is_visible(c.oid) else n.nspname = $1::text end
)`

// sqlIsJSONB reads whether the letters' documents are of type jsonb.
const sqlIsJSONB = `-- reaper.is_jsonb
` + letter.SQLIsJSONB

// queueTables queues the questions.
func (r *Reaper) queueTables(batch *pgx.Batch, known *tables) {
	batch.Queue(sqlIsPlain, pgtext.Parts(r.cfg.Queue.Name)...).QueryRow(func(row pgx.Row) error {
		return row.Scan(&known.plain)
	})
	if r.letters != nil {
		batch.Queue(sqlIsJSONB, pgtext.Parts(r.letters)...).QueryRow(func(row pgx.Row) error {
			return row.Scan(&known.jsonb)
		})
	}
}
