package gates

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

var _ Source = CurrentSetting{}

// CurrentSetting reads settings that are stored for a database or a role:
//
//	alter database shop set queue.lease.reaper_enabled = 'true'
//
// PostgreSQL gives such a value to sessions that begin later, and a pool keeps
// its sessions for long. So each value is looked up twice: as the session has it,
// and as it stands for sessions to come, in pg_db_role_setting. A gate is open
// only when both say so: closing works at once, also in sessions that are open,
// and opening with the next session. Of two ends of a window the earlier one
// counts. An empty value means unset.
//
// A value that is stored nowhere counts only if the session or its transaction has
// set it: with SET, SET LOCAL or set_config. One that the session began with is
// unset. So ALTER DATABASE ... RESET and ALTER ROLE ... RESET, also of ALL, work at
// once in every session: the gates are closed, the base is the default, and there
// is no window any more.
//
// A value from connection options, as in PGOPTIONS or pgx's RuntimeParams, is one
// that the session began with, and so is one from the server's command line or its
// configuration file. It opens no gate and sets no base, and a window's end among
// them bounds nothing. It counts only while the catalog has an entry for the same
// key: then it may close a gate or bring the end of a window forward. Keep these
// settings out of the configuration file and of ALTER SYSTEM in any case: their
// names have two dots, and PostgreSQL 15 does not start with one in the file.
//
// PostgreSQL does not tell who set a value of this kind. One that is set to the
// very text that the session began with counts as the latter.
//
// It is no fence: an apply that has read its gates commits, even if one is closed
// meanwhile. The role needs no privilege.
type CurrentSetting struct{}

// sqlCurrent reads each setting as the session has it and as a later session of
// the same role and database would. It reads the catalog alone. Where the catalog
// has no entry, a session's value that it began with is NULL: pg_settings does
// not show these settings, so the value is reset, compared and set again, all of
// it for this transaction only. Each step reads the one before it, which keeps
// them in this order.
//
//	$1 keys  text[]
const sqlCurrent = `-- gates.current
with looked as materialized (
  select k.key,
    nullif(current_setting(k.key, true), '') as session,
    (
      select substr(c.entry, length(k.key) + 2)
      from pg_db_role_setting s
      cross join unnest(s.setconfig) as c(entry)
      where s.setdatabase in (0, (select d.oid from pg_database d where d.datname = current_database()))
        and s.setrole in (0, (select r.oid from pg_roles r where r.rolname = session_user))
        and starts_with(lower(c.entry), lower(k.key) || '=')
      order by s.setrole <> 0 desc, s.setdatabase <> 0 desc
      limit 1
    ) as stored
  from unnest($1::text[]) as k(key)
),
begun as materialized (
  select l.key, l.session, l.stored,
    l.session is not null and l.stored is null as doubtful,
    case when l.session is not null and l.stored is null then set_config(l.key, null, true) end as began
  from looked l
)
select b.key,
  case when b.doubtful then nullif(set_config(b.key, b.session, true), b.began) else b.session end as session,
  nullif(b.stored, '') as stored,
  b.stored is not null as held
from begun b`

// Read reads what is set of keys.
func (c CurrentSetting) Read(ctx context.Context, tx pgx.Tx, keys []string) (Values, error) {
	return send(ctx, tx, c, keys, false)
}

// Queue queues the statement of Read. There is no fence to ask for.
func (CurrentSetting) Queue(b *pgx.Batch, keys []string, _ bool) func() (Values, error) {
	var rows []currentRow
	b.Queue(sqlCurrent, keys).Query(func(found pgx.Rows) error {
		var row currentRow
		_, err := pgx.ForEachRow(found, []any{&row.Key, &row.Session, &row.Stored, &row.Held}, func() error {
			rows = append(rows, row)
			return nil
		})
		return err
	})
	return func() (Values, error) {
		values := Values{}
		for _, row := range rows {
			row.add(values)
		}
		return values, nil
	}
}

// currentRow is a row of sqlCurrent.
type currentRow struct {
	Key             string
	Session, Stored *string // nil: unset
	Held            bool    // the catalog has an entry, which may be empty
}

func (row currentRow) add(values Values) {
	value := row.strictest()
	if value != nil {
		values[row.Key] = *value
	}
}

// strictest returns the one of two values that keeps a gate closed, if one does;
// of two windows' ends the earlier one. Of the backoff base the stored value
// counts, if there is an entry.
func (row currentRow) strictest() *string {
	switch {
	case !row.Held:
		return row.Session
	case row.Key == BackoffBaseSec:
		return row.Stored
	case row.Key == WindowUntil:
		return earlier(row.Session, row.Stored)
	}
	value := Values{}
	if row.Session != nil {
		value[row.Key] = *row.Session
	}
	if open, err := value.Gate(row.Key, time.Time{}); err != nil || !open {
		return row.Session
	}
	return row.Stored
}

// earlier returns the earlier of two windows' ends, or the one that is none.
func earlier(session, stored *string) *string {
	switch {
	case session == nil:
		return stored
	case stored == nil:
		return session
	}
	first, err := Values{WindowUntil: *session}.Window()
	if err != nil {
		return session
	}
	second, err := Values{WindowUntil: *stored}.Window()
	if err != nil || before(second, first) {
		return stored
	}
	return session
}
