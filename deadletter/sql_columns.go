package deadletter

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
  ) as preset,
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
