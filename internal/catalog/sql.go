package catalog

// sqlTable finds a table by name, in a schema or on the search path.
//
//	$1 schema    text, NULL for the search path
//	$2 relation  text
const sqlTable = `-- catalog.table
select c.oid, n.nspname::text, c.relkind = 'p',
  has_schema_privilege(n.oid, 'usage'),
  has_table_privilege(c.oid, 'select'),
  row_security_active(c.oid),
  coalesce((
    select array_agg(a.attname::text)
    from pg_partitioned_table p, unnest(p.partattrs) k join pg_attribute a on a.attnum = k
    where p.partrelid = c.oid and a.attrelid = c.oid
  ), '{}')
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relname = $2::text
  and c.relkind in ('r', 'p', 'v', 'f')
  and case when $1::text is null then pg_table_is_visible(c.oid) else n.nspname = $1::text end`

// sqlColumns reads the columns of a table.
//
//	$1 table  oid
const sqlColumns = `-- catalog.columns
select a.attname::text as name,
  format_type(b.oid, null) as type,
  case when a.atttypmod > 4 and b.typname in ('varchar', 'bpchar') then a.atttypmod - 4 else 0 end as length,
  coalesce((
    select array_agg(e.enumlabel::text order by e.enumsortorder)
    from pg_enum e
    where e.enumtypid = b.oid
  ), '{}') as enum,
  format_type(t.oid, null) as type_sql,
  a.attnotnull as not_null,
  a.atthasdef or a.attidentity <> '' as filled,
  has_column_privilege(a.attrelid, a.attnum, 'select') as "select",
  has_column_privilege(a.attrelid, a.attnum, 'insert') as insert,
  has_column_privilege(a.attrelid, a.attnum, 'update') as update
from pg_attribute a
join pg_type t on t.oid = a.atttypid
join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped
order by a.attnum`

// sqlKeys reads the columns of each unique index that holds for all rows.
//
//	$1 table  oid
const sqlKeys = `-- catalog.keys
select (
  select array_agg(a.attname::text)
  from unnest(i.indkey[0:i.indnkeyatts - 1]) k
  join pg_attribute a on a.attnum = k and a.attrelid = i.indrelid
)
from pg_index i
where i.indrelid = $1::oid and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null`

// sqlPolicies reads the policies that apply to the current role.
//
//	$1 table  oid
const sqlPolicies = `-- catalog.policies
select p.polpermissive as permissive,
  p.polcmd::text as command,
  pg_get_expr(p.polqual, p.polrelid) as "using",
  pg_get_expr(p.polwithcheck, p.polrelid) as "check"
from pg_policy p
where p.polrelid = $1::oid
  and (p.polroles = '{0}' or exists (select from unnest(p.polroles) r where pg_has_role(r, 'usage')))`
