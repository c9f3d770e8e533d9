package gatesql

import "github.com/jackc/pgx/v5"

// CurrentSetting reads the settings that are stored for the database or the role.
type CurrentSetting struct{}

// sqlCurrent reads each setting's value in the session, and its value for new sessions of
// the same role and database, from the catalog. If the catalog has no entry, a value that
// the session began with is NULL. pg_settings does not show these settings, so for this
// transaction the value is reset, compared and set again. Each step reads from the one
// before it, which fixes their order.
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

// Queue queues the statement, which locks nothing. A setting is unclear if its value in
// the session differs from the stored one.
func (CurrentSetting) Queue(b *pgx.Batch, keys []string, _ bool) *Answer {
	answer := &Answer{Values: map[string]string{}}
	b.Queue(sqlCurrent, keys).Query(func(rows pgx.Rows) error {
		var key string
		var session, stored *string
		var held bool // the catalog has an entry, which may be empty
		_, err := pgx.ForEachRow(rows, []any{&key, &session, &stored, &held}, func() error {
			if held && !equal(session, stored) {
				answer.Unclear = append(answer.Unclear, Unclear{key, session, stored})
			} else {
				answer.add(key, session)
			}
			return nil
		})
		answer.Read = err == nil
		return err
	})
	return answer
}

func equal(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
