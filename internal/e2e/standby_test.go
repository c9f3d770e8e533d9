package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// Dry runs go to a replica, so that they cost the primary nothing. They must see
// the same, and whoever sends an apply there by mistake must be told what is wrong
// and not half of it be done.
func TestAStandbyShowsAllAndAppliesNothing(t *testing.T) {
	t.Parallel()
	primary, standby := reapertest.WithStandby(t)
	reapertest.WithOracle(t, primary)
	reapertest.Stale(t, primary, "retryable", 3, 0, 5)
	reapertest.Stale(t, primary, "exhausted", 2, 4, 5)
	reapertest.CaughtUp(t, primary, standby)
	before := reapertest.Fingerprint(t, primary)

	for name, mover := range reapertest.Movers {
		cfg := reaper.Config{DeadLetter: mover}
		there := reapertest.New(t, standby, cfg)

		require.Equal(t, dryRunJobs(t, reapertest.New(t, primary, cfg)), dryRunJobs(t, there), name)
		require.Len(t, dryRunJobs(t, there), 5, name)

		result, err := there.Apply(t.Context(), reapertest.Actor, 10)
		require.ErrorIs(t, err, reaper.ErrReadOnly, name)
		require.Nil(t, result, name)
		drained, err := there.Drain(t.Context(), reapertest.Actor, 10)
		require.ErrorIs(t, err, reaper.ErrReadOnly, name)
		require.Equal(t, &reaper.DrainResult{}, drained, name)

		require.Equal(t, reaper.CodeStandby, reapertest.OnlyProblem(t, standby, cfg).Code, name)
		require.Empty(t, reapertest.Verify(t, primary, cfg).Problems, name)
	}
	require.Equal(t, before, reapertest.Fingerprint(t, primary))
	require.Equal(t, before, reapertest.Fingerprint(t, standby))
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

// A loop that runs on each replica of the database waits for the day on which its own
// becomes the primary. Until then it must neither fill the log nor ask without a
// pause, and from then on it must work without being started again.
func TestRunWaitsOnAStandbyUntilItIsPromoted(t *testing.T) {
	t.Parallel()
	primary, standby := reapertest.WithStandby(t)
	reapertest.Stale(t, primary, "kind", 3, 0, 5)
	reapertest.CaughtUp(t, primary, standby)
	log := &reapertest.Logbook{}
	type moment struct {
		at  time.Time
		err error
	}
	passes := make(chan moment, 1000)
	const interval = 200 * time.Millisecond
	stop := reapertest.Run(t, reapertest.New(t, standby, reaper.Config{Logger: log.Logger()}), reaper.RunConfig{
		Interval: interval, MinInterval: time.Millisecond, Settle: 1,
		OnPass: func(_ context.Context, pass reaper.Pass) { passes <- moment{time.Now(), pass.Err} },
	})

	var met []moment
	for range 12 { // from 1 ms on the waits double, and so have grown to an interval
		met = append(met, <-passes)
		require.ErrorIs(t, met[len(met)-1].err, reaper.ErrReadOnly)
	}
	require.Greater(t, met[11].at.Sub(met[9].at), 3*interval/2)
	require.Equal(t, 1, log.Count("pass failed"))

	reapertest.Exec(t, standby, `select pg_promote()`)
	require.Eventually(t, func() bool { return reapertest.States(t, standby)["retry_waiting"] == 3 }, reapertest.Waiting, reapertest.Tick)
	require.Eventually(t, func() bool { return log.Count("reaper recovered") == 1 }, reapertest.Waiting, reapertest.Tick)
	stop()
	require.Equal(t, 1, log.Count("pass failed"))
	require.Equal(t, map[string]int{"leased": 3}, reapertest.States(t, primary)) // which is another server from now on
}
