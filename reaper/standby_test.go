package reaper_test

import (
	"context"
	"fmt"
	command "os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// copyPrimary replaces the data of a killed server by those of another one that
// was killed, and has it start as a standby. It makes no file of this process's
// account, which may be another than the server's. The folder of the data stays,
// for by that the server finds the shared memory that it left. $1 and $2 are the
// folders of the two servers.
const copyPrimary = `set -e
cd "$2"
mv data/postgresql.conf .
rm -rf data/*
cp -a "$1/data/." data
mv postgresql.conf data
rm -f data/postmaster.pid
cp -a data/PG_VERSION data/standby.signal`

// withStandby is a server of the test's own, with the reference tables and all
// gates open, and a hot standby that streams from it. A base backup of a server
// that runs is pg_basebackup's, which not every set of binaries has; killed, a
// server holds still for a copy.
func withStandby(t *testing.T) (pool, standby *pgxpool.Pool) {
	t.Helper()
	primary, pool := ownServer(t)
	server, err := pgtest.Start(t.Context(), pgtest.ServerConfig{
		Settings: map[string]string{"primary_conninfo": fmt.Sprintf("host=%s port=5432 user=postgres", primary.Folder())},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	require.NoError(t, server.Kill())
	require.NoError(t, primary.Kill())

	output, err := command.CommandContext(t.Context(), "sh", "-c", copyPrimary, "sh", primary.Folder(), server.Folder()).CombinedOutput()
	require.NoError(t, err, string(output))
	require.NoError(t, primary.Restart(t.Context()))
	require.NoError(t, server.Restart(t.Context()))

	pool.Reset()
	standby, err = pgxpool.New(t.Context(), server.ConnString("postgres"))
	require.NoError(t, err)
	t.Cleanup(standby.Close)
	require.True(t, one[bool](t, standby, `select pg_is_in_recovery()`))
	return pool, standby
}

// caughtUp returns when a standby shows what its primary has committed.
func caughtUp(t *testing.T, primary, standby *pgxpool.Pool) {
	t.Helper()
	position := one[string](t, primary, `select pg_current_wal_insert_lsn()::text`)
	require.Eventually(t, func() bool {
		return one[bool](t, standby, `select pg_last_wal_replay_lsn() >= $1::text::pg_lsn`, position)
	}, waiting, tick)
}

// Dry runs go to a replica, so that they cost the primary nothing. They must see
// the same, and whoever sends an apply there by mistake must be told what is wrong
// and not half of it be done.
func TestAStandbyShowsAllAndAppliesNothing(t *testing.T) {
	t.Parallel()
	primary, standby := withStandby(t)
	withOracle(t, primary)
	stale(t, primary, "retryable", 3, 0, 5)
	stale(t, primary, "exhausted", 2, 4, 5)
	caughtUp(t, primary, standby)
	before := fingerprint(t, primary)

	for name, mover := range movers {
		cfg := reaper.Config{DeadLetter: mover}
		there := newReaper(t, standby, cfg)

		require.Equal(t, dryRunJobs(t, newReaper(t, primary, cfg)), dryRunJobs(t, there), name)
		require.Len(t, dryRunJobs(t, there), 5, name)

		result, err := there.Apply(t.Context(), actor, 10)
		require.ErrorIs(t, err, reaper.ErrReadOnly, name)
		require.Nil(t, result, name)
		drained, err := there.Drain(t.Context(), actor, 10)
		require.ErrorIs(t, err, reaper.ErrReadOnly, name)
		require.Equal(t, &reaper.DrainResult{}, drained, name)

		require.Equal(t, reaper.CodeStandby, onlyProblem(t, standby, cfg).Code, name)
		require.Empty(t, verify(t, primary, cfg).Problems, name)
	}
	require.Equal(t, before, fingerprint(t, primary))
	require.Equal(t, before, fingerprint(t, standby))
}

// dryRunJobs is what a dry run shows, without what differs from one moment to the
// next.
func dryRunJobs(t *testing.T, r *reaper.Reaper) []reaper.Job {
	t.Helper()
	result, err := r.DryRun(t.Context(), 100)
	require.NoError(t, err)
	require.Equal(t, len(result.Jobs), result.StaleLeaseCount)
	for i := range result.Jobs {
		result.Jobs[i].OverdueSeconds = 0
	}
	return result.Jobs
}

// A loop beside each replica of the database waits for the day on which its own
// becomes the primary. Until then it must neither fill the log nor ask without a
// pause, and from then on it must work without being started again.
func TestRunWaitsOnAStandbyUntilItIsPromoted(t *testing.T) {
	t.Parallel()
	primary, standby := withStandby(t)
	stale(t, primary, "kind", 3, 0, 5)
	caughtUp(t, primary, standby)
	log := &logbook{}
	type moment struct {
		at  time.Time
		err error
	}
	passes := make(chan moment, 1000)
	const interval = 200 * time.Millisecond
	stop := run(t, newReaper(t, standby, reaper.Config{Logger: log.logger()}), reaper.RunConfig{
		Interval: interval, MinInterval: time.Millisecond, Settle: 1,
		OnPass: func(_ context.Context, pass reaper.Pass) { passes <- moment{time.Now(), pass.Err} },
	})

	var met []moment
	for range 12 { // from 1 ms on the waits double, and so have grown to an interval
		met = append(met, <-passes)
		require.ErrorIs(t, met[len(met)-1].err, reaper.ErrReadOnly)
	}
	require.Greater(t, met[11].at.Sub(met[9].at), 3*interval/2)
	require.Equal(t, 1, log.count("pass failed"))

	exec(t, standby, `select pg_promote()`)
	require.Eventually(t, func() bool { return states(t, standby)["retry_waiting"] == 3 }, waiting, tick)
	require.Eventually(t, func() bool { return log.count("reaper recovered") == 1 }, waiting, tick)
	stop()
	require.Equal(t, 1, log.count("pass failed"))
	require.Equal(t, map[string]int{"leased": 3}, states(t, primary)) // which is another server from now on
}
