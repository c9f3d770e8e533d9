package citus

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// sqlTables reads how Citus distributes tables.
//
//	$1 names  text[]
const sqlTables = `-- citus.tables
select t.name as name,
  p.colocationid as colocation,
  coalesce(p.repmodel = 't', false) as reference
from unnest($1::text[]) with ordinality t(name, n)
left join pg_dist_partition p on p.logicalrelid = to_regclass(t.name)
order by t.n`

// sqlShards reads each shard of the queue with the shard of the letters on the same node, the
// shard of the settings, which each node has, and the primary of the node. A node that is to
// be drained still has its shards, so its property shouldhaveshards says nothing here. What
// there is not is an empty name.
//
//	$1 queue     text
//	$2 letters   text, NULL: none
//	$3 settings  text, NULL: none
const sqlShards = `-- citus.shards
with shards as (
  select s.logicalrelid, s.shardid, coalesce(s.shardminvalue, '') as range,
    n.nspname::text as schema,
    parse_ident(shard_name(s.logicalrelid, s.shardid)) as name
  from pg_dist_shard s
  join pg_class c on c.oid = s.logicalrelid
  join pg_namespace n on n.oid = c.relnamespace
  where s.logicalrelid in (to_regclass($1::text), to_regclass($2::text), to_regclass($3::text))
)
select q.shardid, q.schema, q.name[cardinality(q.name)],
  coalesce(l.shardid, 0), coalesce(l.schema, ''), coalesce(l.name[cardinality(l.name)], ''),
  coalesce(s.schema, ''), coalesce(s.name[cardinality(s.name)], ''),
  d.nodename::text, d.nodeport
from shards q
join pg_dist_placement p on p.shardid = q.shardid and p.shardstate = 1
join pg_dist_node d on d.groupid = p.groupid and d.noderole = 'primary' and d.isactive
left join shards l on l.logicalrelid = to_regclass($2::text) and l.range = q.range
left join shards s on s.logicalrelid = to_regclass($3::text)
where q.logicalrelid = to_regclass($1::text)
order by q.shardid`

// tables are the tables of a queue. letters and settings may be nil.
type tables struct{ queue, letters, settings pgx.Identifier }

// distributed is a table as Citus distributes it.
type distributed struct {
	Name       string
	Colocation *int32 // nil: Citus does not distribute it
	Reference  bool
}

// shard is a shard of the queue, with what is on the same node.
type shard struct {
	queueID, lettersID       int64
	queue, letters, settings relation
	node                     address
}

// relation is the name of a table; empty: there is none.
type relation struct{ schema, name string }

func (r relation) identifier() pgx.Identifier { return pgx.Identifier{r.schema, r.name} }

// address is where a node listens.
type address struct {
	host string
	port uint16
}

// list reads the shards, and checks that the tables are distributed as they must be.
func (s *Shards) list(ctx context.Context) ([]shard, error) {
	batch := &pgx.Batch{}
	var found []distributed
	var shards []shard
	batch.Queue(sqlTables, s.tables.names()).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByName[distributed])
		return err
	})
	batch.Queue(sqlShards, name(s.tables.queue), name(s.tables.letters), name(s.tables.settings)).
		Query(func(rows pgx.Rows) (err error) {
			shards, err = pgx.CollectRows(rows, scanShard)
			return err
		})
	if err := s.coordinator.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("citus: list shards: %w", err)
	}
	return shards, errors.Join(s.tables.check(found), s.tables.checkShards(shards))
}

// scanShard reads a row of sqlShards.
func scanShard(row pgx.CollectableRow) (shard, error) {
	var s shard
	err := row.Scan(&s.queueID, &s.queue.schema, &s.queue.name, &s.lettersID, &s.letters.schema, &s.letters.name,
		&s.settings.schema, &s.settings.name, &s.node.host, &s.node.port)
	return s, err
}

// names are the names of the tables that there are, quoted.
func (t tables) names() []string {
	var names []string
	for _, id := range []pgx.Identifier{t.queue, t.letters, t.settings} {
		if id != nil {
			names = append(names, id.Sanitize())
		}
	}
	return names
}

// name is a table's name, quoted, or NULL.
func name(id pgx.Identifier) *string {
	if id == nil {
		return nil
	}
	quoted := id.Sanitize()
	return &quoted
}

// check reports each table that is not distributed as it must be. found has them in the order
// of names.
func (t tables) check(found []distributed) error {
	var faults []error
	fault := func(table distributed, what string) {
		faults = append(faults, fmt.Errorf("%w: %s %s", ErrTable, table.Name, what))
	}
	for i, table := range found {
		settings := t.settings != nil && i == len(found)-1
		switch {
		case settings && !table.Reference:
			fault(table, "is no reference table")
		case settings:
		case table.Colocation == nil || table.Reference:
			fault(table, "is not distributed over shards")
		case found[0].Colocation != nil && *table.Colocation != *found[0].Colocation:
			fault(table, "is not co-located with the queue")
		}
	}
	return errors.Join(faults...)
}

// checkShards reports a shard that is on several nodes, which are written together: a reaper
// would write to one of them. It also reports one without what must be on its node.
func (t tables) checkShards(shards []shard) error {
	for i, s := range shards {
		switch {
		case i > 0 && s.queueID == shards[i-1].queueID:
			return fmt.Errorf("%w: %s has copies on several nodes", ErrTable, s.queue.name)
		case t.letters != nil && s.letters.name == "", t.settings != nil && s.settings.name == "":
			return fmt.Errorf("%w: %s has no shard of another table on its node", ErrTable, s.queue.name)
		}
	}
	return nil
}
