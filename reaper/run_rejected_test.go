package reaper_test

import (
	"context"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// Jobs whose unique key is taken, say, are rejected each time. Tried every half
// minute they would cost two transactions each for ever.
func TestRunTriesRejectedJobsAfterLongerAndLongerWaits(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
	reapertest.Stale(t, pool, "check", 20, 0, 5)
	log := &reapertest.Logbook{}
	passes := make(chan reaper.Pass, 10_000)
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger()}), reaper.RunConfig{
		Interval: 20 * time.Millisecond, MinInterval: time.Millisecond, Settle: 1,
		OnPass: func(_ context.Context, pass reaper.Pass) { passes <- pass },
	})

	tries, others := 0, 0
	for others < 60 { // intervals; the waits are 1, 2, 4, 8, ... of them
		pass := <-passes
		require.NoError(t, pass.Err)
		if pass.Result.FailedCount > 0 {
			require.Equal(t, 20, pass.Result.FailedCount)
			tries++
		} else {
			others++
		}
	}
	require.GreaterOrEqual(t, tries, 3)
	require.LessOrEqual(t, tries, 9)
	require.Equal(t, 1, log.Count("jobs rejected"))

	reapertest.Stale(t, pool, "good", 20, 0, 5) // is reaped all the same
	require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == 20 }, reapertest.Waiting, reapertest.Tick)
}
