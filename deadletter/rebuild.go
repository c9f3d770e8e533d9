package deadletter

import (
	"context"
	"fmt"
	"strings"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"
)

// sqlRebuild puts the rows of jobs back into the queue, as their letters have
// them, and returns their keys, NULL for one that a trigger put into another
// state. The key's own value is written also where an identity would make one.
// Served by the letters' key.
//
// A json column of the queue may hold escapes that PostgreSQL stores and cannot
// decode, and one of them would keep the whole document from being taken apart. So
// they are replaced first, by a text that no document can hold, and put back into
// the raw values. The subquery d is not to be taken apart (offset 0): the server would
// read the documents of other letters too, and one of them may be no object.
//
//	$1 dead letter ids  array of the key's type
//	$2 waits            bigint[], microseconds until each job is to run
//	$3 escapes          text, what finds escapes that cannot be decoded
//	$4 escape           text, how they begin
const sqlRebuild = `-- deadletter.rebuild
insert into {queue} ({columns})
overriding system value
select
  {values}
from (
  select d.job_id, d.job_kind, d.max_attempts, d.job, u.wait
  from unnest(
    array_cat(array(select k.dead_letter_id from {dead_letter} k where false), $1),
    $2::bigint[]
  ) as u(id, wait)
  join {dead_letter} d on d.dead_letter_id = u.id
  offset 0
) d
cross join lateral (select d.job::text as job, 'escape' || md5(d.job::text) as mark) t
cross join lateral (
  select array_agg(e.key) as keys,
    coalesce(json_object_agg(e.key, e.value) filter (where e.key <> all({apart}::text[])), '{}')::text as others{raw}
  from json_each(
    case
      when strpos(t.job, $4::text) > 0 then regexp_replace(t.job, $3::text, chr(92) || '1' || t.mark, 'g')
      else t.job
    end::json
  ) e
) p
cross join lateral json_to_record(replace(p.others, t.mark, $4::text)::json) as r({definition})
returning case when {rebuilt} then {job_id}::text end`

// What sqlRebuild is told of escapes: an unescaped NUL, or half of a surrogate
// pair, begins behind an even number of backslashes.
const (
	undecodable = `(?<!\\)((?:\\\\)*)\\u(?=0000|[dD][89a-fA-F])`
	escape      = `\u`
)

// rebuildStatement returns the statement that puts rows back into the queue, as the queue
// is today: a column that was dropped since is left out, and one that was added
// since is filled as an insert would fill it.
func (t target) rebuildStatement(ctx context.Context, tx pgx.Tx) (string, error) {
	queue, retryWaiting, rebuilt := t.in("{queue}"), t.in("{retry_waiting}"), "true"
	if t.hasState {
		rebuilt = t.in("{state} = {retry_waiting}")
	}
	var columns []column
	if err := pgxscan.Select(ctx, tx, &columns, sqlColumns, queue, array(t.columns)); err != nil {
		return "", err
	}
	if len(columns) == 0 {
		return "", fmt.Errorf("%s has no columns", queue)
	}
	var names, values, apart, definition []string
	var raw strings.Builder
	for i, c := range columns {
		names = append(names, quote(c.Name))
		value, written := t.requeued[c.Name]
		if !written {
			value = c.value(retryWaiting, t.in("{now}"), i)
		}
		values = append(values, value)
		switch {
		case c.isRawJSON():
			apart = append(apart, literal(c.Name))
			fmt.Fprintf(&raw, ",\n    max(e.value::text) filter (where e.key = %s) as v%d", literal(c.Name), i)
		case c.isRead():
			definition = append(definition, quote(c.Name)+" "+c.Base)
		}
	}
	return t.in(sqlRebuild,
		"{rebuilt}", rebuilt,
		"{columns}", strings.Join(names, ", "),
		"{values}", strings.Join(values, ",\n  "),
		"{apart}", "array["+strings.Join(apart, ", ")+"]",
		"{raw}", raw.String(),
		"{definition}", strings.Join(definition, ", ")), nil
}
