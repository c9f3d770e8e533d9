package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// The database was away for longer than the leases. Its jobs are running still:
// their workers only could not renew. Reaping at its return would start each of
// them a second time.
func TestNoRunningJobIsGivenAwayAfterAnOutage(t *testing.T) {
	t.Parallel()
	server, pool := reapertest.OwnServer(t)
	const running, dead = 20, 5
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		select case when i <= $1 then 'running' else 'dead' end, 'leased', 'worker-' || i, now() + interval '100 milliseconds'
		from generate_series(1, $1::int + $2) i`, running, dead)
	log := &reapertest.Logbook{}
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger()}), reaper.RunConfig{
		Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: 3 * time.Second,
	})
	require.Eventually(t, func() bool { return log.Count("waiting for workers to renew leases") == 1 }, reapertest.Waiting, reapertest.Tick) // the server is young

	require.NoError(t, server.Kill())
	require.Eventually(t, func() bool { return log.Count("database unreachable") == 1 }, reapertest.Waiting, reapertest.Tick)
	require.NoError(t, server.Restart(t.Context()))

	require.Eventually(t, func() bool { // the workers are back before the reaper is
		_, err := pool.Exec(t.Context(), `update job_queue set lease_until = now() + interval '1 minute'
			where state = 'leased' and job_kind = 'running'`)
		return err == nil
	}, reapertest.Waiting, reapertest.Tick)
	require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == dead }, reapertest.Waiting, reapertest.Tick)
	require.Equal(t, running, reapertest.One[int](t, pool, `select count(*)::int from job_queue
		where job_kind = 'running' and state = 'leased' and attempts = 0`))
	require.Eventually(t, func() bool { return log.Count("reaper recovered") == 1 }, reapertest.Waiting, reapertest.Tick)
	require.Equal(t, 1, log.Count("database unreachable"))
}

// The server was started anew between two looks, and the pool connected again
// without a word: no error told of the outage.
func TestAnUnnoticedRestartIsSettledToo(t *testing.T) {
	t.Parallel()
	server, pool := reapertest.OwnServer(t)
	log := &reapertest.Logbook{}
	passed, goOn := make(chan reaper.Pass), make(chan struct{})
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger()}), reaper.RunConfig{
		Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: time.Second,
		OnPass: func(_ context.Context, p reaper.Pass) { // the loop is held while the server is away
			select {
			case passed <- p:
				<-goOn
			case <-goOn:
			}
		},
	})
	require.NoError(t, (<-passed).Err) // the young server was settled
	settled := log.Count("waiting for workers to renew leases")

	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	pool.Reset() // the pool's connections are gone before the next look
	close(goOn)

	require.Eventually(t, func() bool { return log.Count("waiting for workers to renew leases") > settled }, reapertest.Waiting, reapertest.Tick)
	require.Zero(t, log.Count("database unreachable"))
}
