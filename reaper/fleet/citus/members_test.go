package citus_test

import (
	"crypto/tls"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
	"github.com/lease-governance/leasereaper/reaper/fleet/citus"
)

// A member that is made anew at each list would be stopped and started every Interval. One
// that has moved and is the same as before would go on at the node that it has left.
func TestOnlyAMovedShardIsAnotherMember(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	shards := c.shards(t, citus.Config{})
	before := list(t, shards)
	require.Equal(t, before, list(t, shards))
	c.stale(t, 0, 10)

	c.move(t, 0)
	after := list(t, shards)

	require.Equal(t, before[0].Name, after[0].Name)
	require.NotSame(t, before[0].DB, after[0].DB)
	for n := 1; n < 4; n++ {
		require.Same(t, before[n].DB, after[n].DB)
	}
	require.Len(t, reapertest.Apply(t, reapertest.New(t, after[0].DB, after[0].Config), 20).Actions, 10)
	require.Equal(t, 10, c.reaped(t, 0))
}

// The connections of nodes that are gone are never given back, or those of a shard that still
// runs are closed.
func TestThePoolOfANodeIsClosedAfterItsLastMember(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	shards := c.shards(t, citus.Config{})
	before := list(t, shards)
	use := func(m fleet.Member) error {
		tx, err := m.DB.Begin(t.Context())
		if err != nil {
			return err
		}
		return tx.Rollback(t.Context())
	}
	released := func(members ...fleet.Member) {
		for _, m := range members {
			shards.Released(m)
		}
	}

	released(before...) // at the end of a Run they are listed still
	require.NoError(t, use(before[0]))
	c.move(t, 0)
	list(t, shards)
	released(before[0], fleet.Member{Name: before[2].Name, DB: c.coordinator})
	require.NoError(t, use(before[2]))
	c.move(t, 2)
	after := list(t, shards)
	require.ErrorIs(t, use(before[2]), citus.ErrMoved) // its loop has not ended
	released(before[2])

	closed := use(before[2])
	require.Error(t, closed)
	require.NotErrorIs(t, closed, citus.ErrMoved)
	require.NoError(t, use(after[2]))
	c.move(t, 0)
	require.NoError(t, use(list(t, shards)[0]))
}

// A shard that is not reaped is noticed by nobody; one that is reaped where it should not be
// loses jobs.
func TestMembersRejectsWhatIsNotDistributedAsItMustBe(t *testing.T) {
	t.Parallel()
	named := func(name string) reaper.Table { return reaper.Table{Name: pgx.Identifier{name}} }
	tests := map[string]struct {
		sql string
		cfg reaper.Config
		err error
	}{
		"as in schema.sql":                  {},
		"only the queue is distributed":     {sql: `delete from pg_dist_partition where logicalrelid <> 'job_queue'::regclass`, cfg: queueAlone},
		"a queue that is not there":         {cfg: reaper.Config{Queue: named("jobs")}, err: citus.ErrTable},
		"a queue that is a reference table": {cfg: reaper.Config{Queue: named("queue_config")}, err: citus.ErrTable},
		"letters that are not distributed":  {sql: `delete from pg_dist_partition where logicalrelid = 'job_dead_letter'::regclass`, err: citus.ErrTable},
		"letters that are not co-located":   {sql: `update pg_dist_partition set colocationid = 7 where logicalrelid = 'job_dead_letter'::regclass`, err: citus.ErrTable},
		"a shard of the letters is missing": {sql: `delete from pg_dist_shard where shardid = 102013`, err: citus.ErrTable},
		"settings that are distributed":     {sql: `update pg_dist_partition set repmodel = 's' where logicalrelid = 'queue_config'::regclass`, err: citus.ErrTable},
		"a shard on two nodes":              {sql: `insert into pg_dist_placement (shardid, groupid) values (102008, 2)`, err: citus.ErrTable},
		"a copy that is not in use":         {sql: `insert into pg_dist_placement (shardid, groupid, shardstate) values (102008, 2, 3)`},
		"a node has a standby":              {sql: `insert into pg_dist_node (groupid, nodename, noderole) values (1, 'node-1b', 'secondary')`},
		"a node that is to be drained":      {sql: `update pg_dist_node set shouldhaveshards = false`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			coordinator := newNode(t, 0)
			reapertest.Exec(t, coordinator, test.sql)
			shards, err := citus.New(coordinator, citus.Config{Reaper: test.cfg})
			require.NoError(t, err)
			t.Cleanup(shards.Close)

			members, err := shards.Members(t.Context())

			require.ErrorIs(t, err, test.err)
			if test.err == nil {
				require.Len(t, members, 4)
			}
		})
	}
}

// queueAlone is a configuration that needs no table but the queue.
var queueAlone = reaper.Config{DeadLetter: deadletter.InPlace{}, Gates: reapertest.OpenGate}

// A source of the caller's own and letters in the queue are taken as they are.
func TestTheQueueAloneIsReaped(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := list(t, c.shards(t, citus.Config{Reaper: queueAlone}))[0]
	c.stale(t, 0, 10)
	require.Len(t, reapertest.Apply(t, reapertest.New(t, m.DB, m.Config), 20).Actions, 10)
	c.move(t, 0)

	_, err := reapertest.New(t, m.DB, m.Config).Apply(t.Context(), reapertest.Actor, 20)

	require.ErrorIs(t, err, citus.ErrMoved)
}

// A queue in a schema of its own has shards there, which no search path need have.
func TestNamesAreQuoted(t *testing.T) {
	t.Parallel()
	coordinator := newNode(t, 0)
	reapertest.Exec(t, coordinator, `create schema "Ops"; create table "Ops"."Job queue" (like job_queue including all);
		select create_distributed_table('"Ops"."Job queue"', 'job_id')`)
	cfg := queueAlone
	cfg.Queue.Name = pgx.Identifier{"Ops", "Job queue"}
	shards, err := citus.New(coordinator, citus.Config{Reaper: cfg})
	require.NoError(t, err)
	t.Cleanup(shards.Close)

	m := list(t, shards)[0]

	require.Equal(t, pgx.Identifier{"Ops", "Job queue_102017"}, m.Config.Queue.Name)
	require.Equal(t, "Ops.Job queue_102017", m.Name)
}

// With the coordinator's name in TLS, no node's certificate would be accepted; with its host
// in a fallback, a node's shards would be looked for on the coordinator.
func TestANodeHasTheCoordinatorsConfiguration(t *testing.T) {
	t.Parallel()
	withTLS := pgtest.Connect(t, newNode(t, 0), func(config *pgxpool.Config) {
		conn := config.ConnConfig
		conn.Fallbacks = []*pgconn.FallbackConfig{
			{Host: conn.Host, Port: conn.Port, TLSConfig: &tls.Config{ServerName: "coordinator", MinVersion: tls.VersionTLS12}},
			{Host: conn.Host, Port: conn.Port},
		}
		conn.TLSConfig = &tls.Config{ServerName: "coordinator", MinVersion: tls.VersionTLS12}
	})
	seen := map[string]*pgxpool.Config{}
	shards, err := citus.New(withTLS, citus.Config{Node: func(config *pgxpool.Config) { seen[config.ConnConfig.Host] = config }})
	require.NoError(t, err)
	t.Cleanup(shards.Close)

	list(t, shards)

	require.Len(t, seen, 2)
	for host, config := range seen {
		conn := config.ConnConfig
		require.Equal(t, host, conn.TLSConfig.ServerName)
		require.Equal(t, uint16(5432), conn.Port)
		require.Equal(t, withTLS.Config().ConnConfig.Database, conn.Database)
		require.Equal(t, host, conn.Fallbacks[0].TLSConfig.ServerName)
		require.Equal(t, host, conn.Fallbacks[1].Host)
		require.Nil(t, conn.Fallbacks[1].TLSConfig)
	}
	require.Equal(t, "coordinator", withTLS.Config().ConnConfig.TLSConfig.ServerName)
}

// A mistake in the configuration is told at the start, all of it at once.
func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	function := citus.Config{Reaper: reaper.Config{DeadLetter: deadletter.Function{}, MaxStale: -1}}

	_, err := citus.New(nil, function)
	require.ErrorIs(t, err, citus.ErrNoCoordinator)
	require.ErrorIs(t, err, citus.ErrMover)

	_, err = citus.New(pgtest.Empty(t), function)
	require.ErrorIs(t, err, reaper.ErrNegative)
	require.ErrorIs(t, err, citus.ErrMover)
}

// An operator who closes the gates by the fleet must learn that they are open: a change of one
// node's copy would not reach the others.
func TestTheFleetDoesNotCloseTheCopiesOfTheGates(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	f, err := fleet.New(fleet.Config{Members: c.shards(t, citus.Config{}).Members})
	require.NoError(t, err)

	_, err = f.CloseGates(t.Context(), reapertest.Actor)

	var open *fleet.NotClosedError
	require.ErrorAs(t, err, &open)
	require.Len(t, open.Members, 4)
	for group, node := range c.nodes {
		require.Equal(t, "true", reapertest.One[string](t, node, `select value from `+settings+` where key = $1`, gates.ReaperEnabled), group)
	}
}

// A connection string is all that most programs can be given.
func TestTheVisibilityIsAnOptionOfTheConnection(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig("postgres://node-1/app?citus.override_table_visibility=off")
	require.NoError(t, err)
	pool := pgtest.Connect(t, pgtest.Empty(t), func(own *pgxpool.Config) {
		own.ConnConfig.RuntimeParams = config.ConnConfig.RuntimeParams
	})

	require.Equal(t, "off", reapertest.One[string](t, pool, `show citus.override_table_visibility`))
}
