package citus_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
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

// A column that is added to the reference tables only would be missing on Citus.
func TestTheTablesAreThoseOfTheReferenceSchema(t *testing.T) {
	t.Parallel()
	_, reference, _ := strings.Cut(reaper.Schema, "create table")
	reference = strings.NewReplacer(
		"dead_letter_id uuid        primary key default", "dead_letter_id uuid        not null default",
		"redriven_by    text\n", "redriven_by    text,\n    primary key (dead_letter_id, job_id)\n",
	).Replace(reference)

	_, distributed, _ := strings.Cut(citus.Schema, "create table")
	distributed, _, _ = strings.Cut(distributed, "\n\nselect create_distributed_table")

	require.Equal(t, strings.TrimSpace(reference), strings.TrimSpace(distributed))
}

// A move that blocks writes keeps workers from renewing. A loop that reaps at once when it ends
// takes the jobs of living workers.
func TestALoopTakesALongMoveForAnOutage(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	log := &reapertest.Logbook{}
	m := list(t, c.shards(t, citus.Config{Reaper: reaper.Config{LockTimeout: lockTimeout, Logger: log.Logger()}}))[0]
	r := reapertest.New(t, m.DB, m.Config)
	long := c.begin(t, 0)
	first := make(chan error, 1)
	reapertest.Run(t, r, reapertest.Quick(func(_ context.Context, pass reaper.Pass) {
		select {
		case first <- pass.Err:
		default:
		}
	}))
	require.Equal(t, pgtx.CodeLockNotAvailable, pgtx.Code(<-first))
	require.Zero(t, log.Count(reapertest.Renewing))

	for _, tx := range long.txs {
		require.NoError(t, tx.Rollback(t.Context())) // the move has failed
	}

	require.Eventually(t, func() bool { return log.Count(reapertest.Renewing) > 0 }, reapertest.Waiting, reapertest.Tick)
}
