package reaper

import "github.com/jackc/pgx/v5"

// tables is what decides how rows are found and letters are stored. It is read from
// the catalog before the first claim, and again after an error, since the tables may
// have been altered. Nothing depends on it but speed, and that rows which share an id
// are told apart.
type tables struct {
	plain bool // the queue is a plain table, so that a row's address finds it
	jsonb bool // the letters' column job is a jsonb
}

// sqlTables reads them.
//
//	$1 schema of the queue    text, NULL for the search path
//	$2 queue                  text
//	$3 schema of the letters  text, NULL for the search path
//	$4 letters                text
const sqlTables = `-- reaper.tables
select
  exists (
    select from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where c.relname = $2::text and c.relkind = 'r'
      and case when $1::text is null then pg_table_is_visible(c.oid) else n.nspname = $1::text end
  ),
  exists (
    select from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid
    where c.relname = $4::text and a.attname = 'job' and a.atttypid = 'jsonb'::regtype
      and case when $3::text is null then pg_table_is_visible(c.oid) else n.nspname = $3::text end
  )`

func (r *Reaper) queueTables(batch *pgx.Batch, known *tables) {
	args := append(schemaAndName(r.cfg.Queue.Name), schemaAndName(r.letters)...)
	batch.Queue(sqlTables, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&known.plain, &known.jsonb) })
}

// schemaAndName are the parts of a name, the first NULL for the search path. Both
// are NULL where there is no table.
func schemaAndName(name pgx.Identifier) []any {
	switch len(name) {
	case 0:
		return []any{nil, nil}
	case 1:
		return []any{nil, name[0]}
	}
	return []any{name[0], name[1]}
}
