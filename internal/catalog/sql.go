package catalog

// sqlTable finds a table by name, in a schema or on the search path.
//
//	$1 schema    text, NULL for the search path
//	$2 relation  text
const sqlTable = `-- catalog.table
select c.oid, n.nspname::text, c.relkind::text,
  has_schema_privilege(n.oid, 'usage'),
  has_table_privilege(c.oid, 'select'),
  row_security_active(c.oid),
  array(
    select a.attname::text
    from pg_partitioned_table p, unnest(p.partattrs) k join pg_attribute a on a.attnum = k
    where p.partrelid = c.oid and a.attrelid = c.oid
  )
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relname = $2::text
  and c.relkind in ('r', 'p', 'v', 'm', 'f')
  and case when $1::text is null then pg_table_is_visible(c.oid) else n.nspname = $1::text end`

// The statements below have one parameter.
//
//	$1 table  oid

// types has the type of each column with its modifier. For a domain it has also the type
// below it, down to a type that is not a domain.
const types = `recursive types as (
  select a.attnum, a.atttypid as type, a.atttypmod as modifier, false as not_null, false as filled
  from pg_attribute a
  where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped
  union all
  select d.attnum, t.typbasetype, t.typtypmod, d.not_null or t.typnotnull, d.filled or t.typdefaultbin is not null
  from types d
  join pg_type t on t.oid = d.type
  where t.typtype = 'd'
)`

// parts has the types of the columns and of their elements and fields, at any depth.
const parts = `parts as (
  select a.attnum, a.atttypid as type
  from pg_attribute a
  where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped
  union
  select p.attnum, i.type
  from parts p
  join pg_type t on t.oid = p.type
  cross join lateral (
    select t.typbasetype
    union all
    select t.typelem
    union all
    select f.atttypid from pg_attribute f where f.attrelid = t.typrelid and f.attnum > 0 and not f.attisdropped
  ) i(type)
  where i.type <> 0
)`

// sqlColumns reads the columns of a table.
const sqlColumns = `-- catalog.columns
with ` + types + `,
` + parts + `
select a.attname::text as name,
  case when b.typname = 'citext' then 'citext' else format_type(b.oid, null) end as type,
  case when b.typname = 'bpchar' then 'bpchar' else format_type(b.oid, null) end as base,
  case when d.modifier > 4 and b.typname in ('varchar', 'bpchar') then d.modifier - 4 else 0 end as length,
  array(select e.enumlabel::text from pg_enum e where e.enumtypid = b.oid order by e.enumsortorder) as enum,
  format_type(a.atttypid, a.atttypmod) as type_sql,
  a.attnotnull or d.not_null as not_null,
  a.attnotnull as not_null_itself,
  a.atthasdef or a.attidentity <> '' or d.filled as has_default,
  array(
    select s.oid::regclass::text
    from pg_attrdef f
    join pg_depend u on u.classid = 'pg_attrdef'::regclass and u.objid = f.oid and u.refclassid = 'pg_class'::regclass
    join pg_class s on s.oid = u.refobjid
    where f.adrelid = a.attrelid and f.adnum = a.attnum
      and case when s.relkind = 'S' then not has_sequence_privilege(s.oid, 'usage, update') else false end
  ) as locked_sequences,
  a.attgenerated::text as generated,
  a.attidentity = 'a' as identity,
  exists (
    select
    from pg_index i
    where i.indrelid = a.attrelid and i.indisprimary and a.attnum = any(i.indkey)
  ) as primary,
  exists (select from parts p where p.attnum = a.attnum and p.type = 'json'::regtype) as holds_json,
  array(
    select p
    from unnest('{select,insert,update}'::text[]) p
    where has_column_privilege(a.attrelid, a.attnum, p)
  ) as privileges
from pg_attribute a
join types d on d.attnum = a.attnum
join pg_type b on b.oid = d.type and b.typtype <> 'd'
where a.attrelid = $1::oid
order by a.attnum`

// sqlPolicies reads the policies that apply to the current role.
const sqlPolicies = `-- catalog.policies
select quote_ident(p.polname) as name,
  p.polpermissive as permissive,
  p.polcmd::text as command,
  pg_get_expr(p.polqual, p.polrelid) as "using",
  pg_get_expr(p.polwithcheck, p.polrelid) as "check"
from pg_policy p
where p.polrelid = $1::oid
  and (p.polroles = '{0}' or exists (select from unnest(p.polroles) r where pg_has_role(r, 'usage')))
order by p.polname`

// sqlChecks reads the CHECK constraints of a table and those of its columns'
// domains. A domain's expression calls the column "value". Since PostgreSQL 18 a
// constraint may be not enforced.
const sqlChecks = `-- catalog.checks
with ` + types + `
select quote_ident(c.conname) as name,
  pg_get_expr(c.conbin, c.conrelid) as expression,
  array(
    select a.attname::text
    from unnest(case when c.contypid = 0 then c.conkey else array[d.attnum] end) k
    join pg_attribute a on a.attnum = k and a.attrelid = $1::oid
  ) as columns,
  coalesce(format_type(d.type, null), '') as domain
from pg_constraint c
left join types d on d.type = c.contypid
where c.contype = 'c'
  and (c.conrelid = $1::oid or d.type is not null)
  and coalesce((to_jsonb(c) ->> 'conenforced')::boolean, true)
order by name`

// tree is a table and its partitions, or the tables that inherit from it.
const tree = `recursive tree as (
  select $1::oid as oid
  union
  select i.inhrelid
  from tree t
  join pg_inherits i on i.inhparent = t.oid
)`

// sqlKeys reads each unique index that holds for all rows, and the index of each exclusion
// constraint on equal values. Without a name, it reads also keys for which every partition
// has its own index.
const sqlKeys = `-- catalog.keys
with ` + tree + `,
keys as (
  select i.indrelid as relation,
    i.indexrelid::regclass::text as index,
    coalesce((
      select quote_ident(c.conname)
      from pg_constraint c
      where c.conindid = i.indexrelid and c.conrelid = i.indrelid and c.contype in ('p', 'u', 'x')
    ), '') as constraint,
    i.indisexclusion as excludes,
    (
      select array_agg(a.attname::text order by k.n)
      from unnest(i.indkey[0:i.indnkeyatts - 1]) with ordinality k(attnum, n)
      join pg_attribute a on a.attnum = k.attnum and a.attrelid = i.indrelid
    ) as columns
  from pg_index i
  where i.indrelid in (select oid from tree)
    and i.indisvalid and i.indpred is null and i.indexprs is null
    and (i.indisunique or i.indisexclusion and not exists (
      select
      from pg_constraint c, unnest(c.conexclop) o
      join pg_operator e on e.oid = o
      where c.conindid = i.indexrelid and e.oprname <> '='
    ))
),
leaves as (
  select c.oid
  from tree t
  join pg_class c on c.oid = t.oid and c.relispartition and c.relkind <> 'p'
)
select k.index, k.constraint, k.excludes, k.columns
from keys k
where k.relation = $1::oid
union all
select '', '', false, k.columns
from keys k
join leaves l on l.oid = k.relation and l.oid <> $1::oid
where not k.excludes
group by k.columns
having count(distinct l.oid) = (select count(*) from leaves)
order by index`

// sqlUnidentified reads the tables of a tree that are published for updates or deletes
// without a replica identity. A partition is published also when one of its parents is.
const sqlUnidentified = `-- catalog.unidentified
with ` + tree + `,
lacking as (
  select c.oid, k.indexrelid is not null as keyed
  from tree t
  join pg_class c on c.oid = t.oid
  left join pg_index k on k.indrelid = c.oid and k.indisprimary and k.indimmediate and k.indisvalid
  where c.relkind = 'r'
    and case c.relreplident
      when 'n' then true
      when 'd' then k.indexrelid is null
      when 'i' then not exists (select from pg_index i where i.indrelid = c.oid and i.indisreplident and i.indisvalid)
      else false
    end
)
select l.oid::regclass::text as name,
  l.keyed as keyed,
  p.updates as updates,
  p.deletes as deletes
from lacking l
cross join lateral (
  select coalesce(bool_or(p.pubupdate), false) as updates, coalesce(bool_or(p.pubdelete), false) as deletes
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_publication_tables t on t.schemaname = n.nspname and t.tablename = c.relname
  join pg_publication p on p.pubname = t.pubname
  where c.oid = l.oid or c.oid in (select a.relid from pg_partition_ancestors(l.oid) a(relid))
) p
where p.updates or p.deletes
order by name`

// sqlIndexes reads the valid B-tree indexes of a table and of its partitions. An
// expression is a column without a name.
const sqlIndexes = `-- catalog.indexes
with ` + tree + `
select n.nspname::text as schema,
  c.relname::text as relation,
  i.indexrelid::regclass::text as name,
  array(
    select coalesce(a.attname::text, '')
    from unnest(i.indkey[0:i.indnkeyatts - 1]) with ordinality k(attnum, n)
    left join pg_attribute a on a.attnum = k.attnum and a.attnum > 0 and a.attrelid = i.indrelid
    order by k.n
  ) as columns,
  coalesce(pg_get_expr(i.indpred, i.indrelid), '') as predicate
from tree t
join pg_class c on c.oid = t.oid
join pg_namespace n on n.oid = c.relnamespace
join pg_index i on i.indrelid = c.oid and i.indisvalid and i.indisready
join pg_class x on x.oid = i.indexrelid
join pg_am m on m.oid = x.relam and m.amname = 'btree'
order by name`
