package citus_test

import (
	_ "embed"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper/fleet"
	"github.com/lease-governance/leasereaper/reaper/fleet/citus"
)

//go:embed testdata/standin.sql
var standIn string

// The tables of schema.sql in the stand-in: four shards of the queue, the shards of the
// letters beside them, and the shard of the settings.
const (
	firstShard   = 102008
	firstLetters = 102012
	settings     = "queue_config_102016"
)

// cluster is a coordinator and two nodes, each a database with the stand-in.
type cluster struct {
	coordinator *pgxpool.Pool
	nodes       [3]*pgxpool.Pool // by group; the first one is the coordinator
}

// newCluster makes a cluster with the tables of schema.sql and open gates.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	for group := range c.nodes {
		c.nodes[group] = newNode(t, group)
	}
	c.coordinator = c.nodes[0]
	return c
}

// newNode makes a node of a cluster. Citus runs DDL on every node, as this does.
func newNode(t *testing.T, group int) *pgxpool.Pool {
	t.Helper()
	node := pgtest.Empty(t)
	reapertest.Exec(t, node, standIn)
	reapertest.Exec(t, node, `insert into pg_dist_local_group values ($1)`, group)
	reapertest.Exec(t, node, `insert into pg_dist_node (groupid, nodename, shouldhaveshards)
		values (0, 'node-0', false), (1, 'node-1', true), (2, 'node-2', true)`)
	reapertest.Exec(t, node, citus.Schema)
	reapertest.Exec(t, node, citus.Schema) // again, as it may be
	reapertest.Exec(t, node, citus.GuardFunction)
	reapertest.Exec(t, node, `insert into `+settings+` (key, value) values ('queue.job_substrate.enabled', 'true'),
		('queue.lease.reaper_enabled', 'true'), ('queue.lease.reaper_dry_run_only', 'false')`)
	return node
}

// shards returns the Shards of the cluster.
func (c *cluster) shards(t *testing.T, cfg citus.Config) *citus.Shards {
	t.Helper()
	change := cfg.Node
	cfg.Node = func(config *pgxpool.Config) {
		c.route(config)
		if change != nil {
			change(config)
		}
	}
	shards, err := citus.New(c.coordinator, cfg)
	require.NoError(t, err)
	t.Cleanup(shards.Close)
	return shards
}

// route makes the host of a node the database that stands for it.
func (c *cluster) route(config *pgxpool.Config) {
	var group int
	if _, err := fmt.Sscanf(config.ConnConfig.Host, "node-%d", &group); err != nil {
		panic(err)
	}
	node := c.nodes[group].Config().ConnConfig
	config.ConnConfig.Host, config.ConnConfig.Port = node.Host, node.Port
	config.ConnConfig.Database, config.ConnConfig.Fallbacks = node.Database, nil
}

// list returns the members.
func list(t *testing.T, shards *citus.Shards) []fleet.Member {
	t.Helper()
	members, err := shards.Members(t.Context())
	require.NoError(t, err)
	return members
}

// storeOf is where a member's dead letters are.
func storeOf(t *testing.T, m fleet.Member) deadletter.Store {
	t.Helper()
	letters, ok := m.Config.DeadLetter.(deadletter.Table)
	require.True(t, ok)
	return deadletter.Store{Table: letters, Queue: m.Config.Queue.DeadLetterQueue()}
}

// queueOf and lettersOf are the names of a shard's tables.
func queueOf(n int) string   { return fmt.Sprintf("job_queue_%d", firstShard+n) }
func lettersOf(n int) string { return fmt.Sprintf("job_dead_letter_%d", firstLetters+n) }

// nodeOf returns the node that has a shard.
func (c *cluster) nodeOf(t *testing.T, n int) int {
	t.Helper()
	return reapertest.One[int](t, c.coordinator, `select groupid from pg_dist_placement where shardid = $1`, firstShard+n)
}

// on returns the database of the node that has a shard.
func (c *cluster) on(t *testing.T, n int) *pgxpool.Pool {
	t.Helper()
	return c.nodes[c.nodeOf(t, n)]
}

// stale puts jobs with expired leases into a shard: of ten, one is moved and nine are reset.
func (c *cluster) stale(t *testing.T, n, jobs int) {
	t.Helper()
	reapertest.Exec(t, c.on(t, n), `insert into `+queueOf(n)+` (job_kind, state, attempts, lease_owner, lease_until)
		select 'kind', 'leased', case when i % 10 = 1 then 4 else 0 end, 'worker', now() - make_interval(secs => i)
		from generate_series(1, $1::int) i`, jobs)
}

// reaped counts the jobs of a shard that were reaped, where the shard is.
func (c *cluster) reaped(t *testing.T, n int) int {
	t.Helper()
	return reapertest.One[int](t, c.on(t, n), `select count(*)::int from `+queueOf(n)+` where state <> 'leased'`)
}

// move is a shard that moves to the other node, with the shard of its letters: a transaction
// on each node.
type move struct {
	shard int
	to    int
	txs   [3]pgx.Tx
}

// begin locks the shard's metadata on every node, as Citus does when it blocks writes.
func (c *cluster) begin(t *testing.T, shard int) *move {
	t.Helper()
	m := &move{shard: shard, to: 3 - c.nodeOf(t, shard)}
	for group := range c.nodes {
		m.txs[group] = reapertest.Begin(t, c.nodes[group])
		reapertest.Exec(t, m.txs[group], `select lock_shard_metadata(7, array[$1, $2]::bigint[])`, firstShard+shard, firstLetters+shard)
	}
	return m
}

// copy copies the rows. What is on the old node stays there, until Citus cleans up.
func (m *move) copy(t *testing.T) {
	t.Helper()
	from, to := m.txs[3-m.to], m.txs[m.to]
	for table, like := range map[string]string{queueOf(m.shard): "job_queue", lettersOf(m.shard): "job_dead_letter"} {
		rows := reapertest.One[string](t, from, `select coalesce(jsonb_agg(to_jsonb(s)), '[]')::text from `+table+` s`)
		reapertest.Exec(t, to, `create table if not exists `+table+` (like `+like+` including all)`)
		reapertest.Exec(t, to, `truncate `+table)
		reapertest.Exec(t, to, `insert into `+table+` select * from jsonb_populate_recordset(null::`+like+`, $1::jsonb)`, rows)
	}
}

// commit makes the new node the shard's.
func (m *move) commit(t *testing.T) {
	t.Helper()
	for _, tx := range m.txs {
		reapertest.Exec(t, tx, `update pg_dist_placement set groupid = $1 where shardid = any($2::bigint[])`,
			m.to, []int{firstShard + m.shard, firstLetters + m.shard})
	}
	for _, tx := range m.txs {
		require.NoError(t, tx.Commit(t.Context()))
	}
}

// move moves a shard to the other node.
func (c *cluster) move(t *testing.T, shard int) {
	t.Helper()
	m := c.begin(t, shard)
	m.copy(t)
	m.commit(t)
}
