package deadletter

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// column is a column of the queue that an insert can write.
type column struct {
	Name    string
	Named   int    // which of the queue's named columns it is, from 1; 0: one of the user's own
	Default string // what fills it when nothing is said, as SQL; empty: NULL does
	Type    string // as SQL
	Base    string // the type below the domains, with its length
	Kind    string // json, jsonb or hstore, of the column or its elements; else empty
	Element string // the type of the elements, when they are of that kind and in one dimension
	NotNull bool   // the column or a domain says so
}

// isRawJSON reports whether the value is made of the raw JSON that the letter has.
// What PostgreSQL makes of JSON by itself is NULL where a document is null, an
// array of two dimensions where jsonb[] holds arrays, and nothing for an hstore.
func (c column) isRawJSON() bool { return c.Kind != "" && c.Named == 0 }

// value is what a rebuilt row has in the column, as SQL over the tables of
// sqlRebuild. The key is the letter's own, which may be a text, so that a column that has
// another name by now does no harm; nor does it to what the letter has besides.
func (c column) value(retryWaiting, now string, index int) string {
	switch c.Named {
	case 1:
		return "d.job_id::" + c.Type
	case 2:
		return c.storedOr("r."+quote(c.Name), "d.job_kind")
	case 3:
		return c.storedOr("r."+quote(c.Name), "d.max_attempts")
	case 4:
		return retryWaiting
	case 5, 10:
		return "0"
	case 6:
		return now + " + d.wait * interval '1 microsecond'"
	case 7, 8, 9:
		return "null"
	}
	if !c.isRawJSON() {
		return c.storedOr("r."+quote(c.Name), c.Default)
	}
	raw := fmt.Sprintf("p.v%d", index)
	if c.Element != "" {
		return c.storedOr(c.elements(raw), c.Default)
	}
	return c.storedOr(c.document(raw, c.Type, !c.NotNull), c.Default)
}

// isRead reports whether the value is read from the letter as the type's text.
func (c column) isRead() bool {
	return !c.isRawJSON() && (c.Named == 0 || c.Named == 2 || c.Named == 3)
}

// storedOr is the value as the letter has it, or something else where the letter
// has nothing of that name.
func (c column) storedOr(value, otherwise string) string {
	if otherwise == "" {
		return value
	}
	return fmt.Sprintf("case when %s = any(p.keys) then %s else (%s)::%s end",
		literal(c.Name), value, otherwise, c.Type)
}

// Values of raw JSON as SQL. {raw} is the JSON as text, {type} what to make.
const (
	// sqlRaw is the JSON as it was. sqlRawOrNull takes null for NULL.
	sqlRaw       = `replace({raw}, t.mark, $4::text)::{type}`
	sqlRawOrNull = `nullif(replace({raw}, t.mark, $4::text), 'null')::{type}`

	// sqlPairs is the text form of an hstore; chr(92) is a backslash, whatever
	// standard_conforming_strings says. JSON that is no object is its text.
	sqlPairs = `case json_typeof({raw}::json)
    when 'object' then (
      select coalesce(string_agg({key} || '=>' || coalesce({value}, 'NULL'), ','), '')
      from json_each_text({raw}::json) h
    )
    else {raw}::json #>> '{}'
  end::{type}`

	sqlPairText = `'"' || replace(replace({text}, chr(92), chr(92) || chr(92)), '"', chr(92) || '"') || '"'`

	// sqlElements is an array. JSON that is no array is its text.
	sqlElements = `case json_typeof({raw}::json)
    when 'array' then array(
      select {element}
      from json_array_elements({raw}::json) with ordinality as a(value, n)
      order by a.n
    )::{type}
    else ({raw}::json #>> '{}')::{type}
  end`
)

// document is a value of the column's kind.
func (c column) document(raw, typ string, nullable bool) string {
	sql := sqlRaw
	switch {
	case c.Kind == "hstore":
		sql = strings.NewReplacer(
			"{key}", strings.ReplaceAll(sqlPairText, "{text}", "h.key"),
			"{value}", strings.ReplaceAll(sqlPairText, "{text}", "h.value"),
		).Replace(sqlPairs)
	case nullable:
		sql = sqlRawOrNull
	}
	return strings.NewReplacer("{raw}", raw, "{type}", typ).Replace(sql)
}

// elements is an array of such values.
func (c column) elements(raw string) string {
	element := c.document("a.value::text", c.Element, true)
	return strings.NewReplacer("{raw}", raw, "{type}", c.Type, "{element}", element).Replace(sqlElements)
}

// quote quotes a name that the catalogs have.
func quote(name ...string) string { return pgx.Identifier(name).Sanitize() }

// literal quotes a name as a text. One that a table has can be quoted.
func literal(name string) string {
	sql, err := pgtext.Label(name)
	if err != nil {
		return "''"
	}
	return sql
}

// sqlColumns reads the columns of the queue that an insert can write, with what
// fills each when nothing is said, as SQL; whose name a column is of the named
// ones, counted from 1; its type, and what that is made of. A type of -1 is
// written without a length, so that a cast to it cuts nothing off. Nothing is
// locked.
//
//	$1 queue  text, quoted
//	$2 named  text[], empty for no column
const sqlColumns = `-- deadletter.columns
with recursive below as (
  select a.attnum, a.atttypid as type, a.atttypmod as length, a.attnotnull as not_null, t.typtype = 'd' as more
  from pg_attribute a
  join pg_type t on t.oid = a.atttypid
  where a.attrelid = $1::text::regclass
    and a.attnum > 0
    and not a.attisdropped
    and a.attgenerated = ''
  union all
  select b.attnum, t.typbasetype, greatest(b.length, t.typtypmod), b.not_null or t.typnotnull, u.typtype = 'd'
  from below b
  join pg_type t on t.oid = b.type
  join pg_type u on u.oid = t.typbasetype
  where b.more
)
select a.attname::text as name,
  coalesce(array_position($2::text[], a.attname::text), 0) as named,
  coalesce(
    pg_get_expr(d.adbin, d.adrelid),
    case when a.attidentity <> '' then
      format('nextval(%L::regclass)', pg_get_serial_sequence($1::text, a.attname::text))
    end,
    pg_get_expr(t.typdefaultbin, 0),
    ''
  ) as "default",
  format_type(a.atttypid, -1) as type,
  format_type(b.type, b.length) as base,
  case
    when bt.typname in ('json', 'jsonb', 'hstore') then bt.typname::text
    when et.typname in ('json', 'jsonb', 'hstore') and a.attndims <= 1 then et.typname::text
    else ''
  end as kind,
  case when et.typname in ('json', 'jsonb', 'hstore') then format_type(e.oid, -1) else '' end as element,
  b.not_null
from below b
join pg_attribute a on a.attrelid = $1::text::regclass and a.attnum = b.attnum
join pg_type t on t.oid = a.atttypid
join pg_type bt on bt.oid = b.type
left join pg_type e on e.oid = bt.typelem and bt.typcategory = 'A'
left join pg_type et on et.oid = coalesce(nullif(e.typbasetype, 0), e.oid)
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where not b.more
order by a.attnum`
