package reaper_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// ownServer is a server of the test's own, with the reference tables and all
// gates open, that keeps what it committed.
func ownServer(t *testing.T) (*pgtest.Server, *pgxpool.Pool) {
	t.Helper()
	server, err := pgtest.Start(t.Context(), pgtest.ServerConfig{Fsync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	pool, err := pgxpool.New(t.Context(), server.ConnString("postgres"))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	exec(t, pool, reaper.Schema)
	openGates(t, pool)
	return server, pool
}

// The database was away for longer than the leases. Its jobs are running still:
// their workers only could not renew. Reaping at its return would start each of
// them a second time.
func TestNoRunningJobIsGivenAwayAfterAnOutage(t *testing.T) {
	t.Parallel()
	server, pool := ownServer(t)
	const running, dead = 20, 5
	exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		select case when i <= $1 then 'running' else 'dead' end, 'leased', 'worker-' || i, now() + interval '100 milliseconds'
		from generate_series(1, $1::int + $2) i`, running, dead)
	log := &logbook{}
	run(t, newReaper(t, pool, reaper.Config{Logger: log.logger()}), reaper.RunConfig{
		Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: 3 * time.Second,
	})
	require.Eventually(t, func() bool { return log.count("waiting for workers to renew leases") == 1 }, waiting, tick) // the server is young

	require.NoError(t, server.Kill())
	require.Eventually(t, func() bool { return log.count("database unreachable") == 1 }, waiting, tick)
	require.NoError(t, server.Restart(t.Context()))

	require.Eventually(t, func() bool { // the workers are back before the reaper is
		_, err := pool.Exec(t.Context(), `update job_queue set lease_until = now() + interval '1 minute'
			where state = 'leased' and job_kind = 'running'`)
		return err == nil
	}, waiting, tick)
	require.Eventually(t, func() bool { return states(t, pool)["retry_waiting"] == dead }, waiting, tick)
	require.Equal(t, running, one[int](t, pool, `select count(*)::int from job_queue
		where job_kind = 'running' and state = 'leased' and attempts = 0`))
	require.Eventually(t, func() bool { return log.count("reaper recovered") == 1 }, waiting, tick)
	require.Equal(t, 1, log.count("database unreachable"))
}

// The server was started anew between two looks, and the pool connected again
// without a word: no error told of the outage.
func TestAnUnnoticedRestartIsSettledToo(t *testing.T) {
	t.Parallel()
	server, pool := ownServer(t)
	log := &logbook{}
	passed, goOn := make(chan reaper.Pass), make(chan struct{})
	run(t, newReaper(t, pool, reaper.Config{Logger: log.logger()}), reaper.RunConfig{
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
	settled := log.count("waiting for workers to renew leases")

	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	pool.Reset() // the pool's connections are gone before the next look
	close(goOn)

	require.Eventually(t, func() bool { return log.count("waiting for workers to renew leases") > settled }, waiting, tick)
	require.Zero(t, log.count("database unreachable"))
}
