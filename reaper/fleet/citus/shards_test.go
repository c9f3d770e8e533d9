package citus_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper/fleet"
	"github.com/lease-governance/leasereaper/reaper/fleet/citus"
)

// A member with the name of another table reaps nothing, or waits for all shards.
func TestMembersAreTheShardsOfTheQueue(t *testing.T) {
	t.Parallel()
	c := newCluster(t)

	members := list(t, c.shards(t, citus.Config{}))

	require.Len(t, members, 4)
	for n, m := range members {
		require.Equal(t, queueOf(n), m.Name)
		require.Equal(t, pgx.Identifier{"public", queueOf(n)}, m.Config.Queue.Name)
		require.Equal(t, deadletter.Table{Name: pgx.Identifier{"public", lettersOf(n)}}, m.Config.DeadLetter)
		require.Equal(t, gates.Replica{Name: pgx.Identifier{"public", settings}}, m.Config.Gates)
		tx, err := m.DB.Begin(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.on(t, n).Config().ConnConfig.Database, reapertest.One[string](t, tx, `select current_database()`))
		require.Equal(t, "off", reapertest.One[string](t, tx, `show citus.override_table_visibility`))
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// The Reaper of a member is an ordinary one: what an operator calls works on each shard.
func TestTheFleetReapsEveryShard(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	shards := c.shards(t, citus.Config{})
	f, err := fleet.New(fleet.Config{Members: shards.Members, Released: shards.Released})
	require.NoError(t, err)
	for n := range 4 {
		c.stale(t, n, 20)
	}

	reports, err := f.Verify(t.Context())
	require.NoError(t, err)
	dryRuns, err := f.DryRun(t.Context(), 10)
	require.NoError(t, err)
	drained, err := f.Drain(t.Context(), reapertest.Actor, 15)
	require.NoError(t, err)

	for n, m := range list(t, shards) {
		require.NoError(t, reports[n].Err)
		require.Empty(t, reports[n].Result.Problems)
		require.Equal(t, 20, dryRuns[n].Result.StaleLeaseCount)
		require.NoError(t, drained[n].Err)
		require.Equal(t, []int{18, 2}, []int{drained[n].Result.ResetCount, drained[n].Result.DeadLetterCount})
		require.Equal(t, 20, c.reaped(t, n))

		store := storeOf(t, m)
		page, err := deadletter.List(t.Context(), m.DB, store, deadletter.Filter{}, 10)
		require.NoError(t, err)
		require.Len(t, page.Letters, 2)
		redriven, err := deadletter.Redrive(t.Context(), m.DB, store, reapertest.Actor, deadletter.Filter{}, 10)
		require.NoError(t, err)
		require.Equal(t, 2, redriven.RedrivenCount)
	}
}
