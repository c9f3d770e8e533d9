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
	Preset  string // what fills it when nothing is said, as SQL; empty: NULL does
	Type    string // as SQL
	Base    string // the type below the domains, with its length
	Kind    string // json, jsonb or hstore, of the column or its elements; else empty
	Element string // the type of the elements, when they are of that kind and in one dimension
	NotNull bool   // the column or a domain says so
}

// isApart reports whether the value is made of the raw JSON that the letter has.
// What PostgreSQL makes of JSON by itself is NULL where a document is null, an
// array of two dimensions where jsonb[] holds arrays, and nothing for an hstore.
func (c column) isApart() bool { return c.Kind != "" && c.Named == 0 }

// value is what a rebuilt row has in the column, as SQL over the tables of
// sqlRebuild. The key is the letter's own, so that a column that has another name
// by now does no harm; nor does it to what the letter has besides.
func (c column) value(retryWaiting string, place int) string {
	switch c.Named {
	case 1:
		return "d.job_id"
	case 2:
		return c.stored("r."+quote(c.Name), "d.job_kind")
	case 3:
		return c.stored("r."+quote(c.Name), "d.max_attempts")
	case 4:
		return retryWaiting
	case 5:
		return "0"
	case 6:
		return "now() + u.wait * interval '1 microsecond'"
	case 7, 8, 9:
		return "null"
	}
	if !c.isApart() {
		return c.stored("r."+quote(c.Name), c.Preset)
	}
	raw := fmt.Sprintf("p.v%d", place)
	if c.Element != "" {
		return c.stored(c.elements(raw), c.Preset)
	}
	return c.stored(c.document(raw, c.Type, !c.NotNull), c.Preset)
}

// isRead reports whether the value is read from the letter as the type's text.
func (c column) isRead() bool { return !c.isApart() && (c.Named == 0 || c.Named == 2 || c.Named == 3) }

// stored is the value as the letter has it, or something else where the letter
// has nothing of that name.
func (c column) stored(value, otherwise string) string {
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
