package reaper_test

import (
	"context"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A job that was stale before the service started, one that becomes stale later,
// and a backlog of many batches are all given back without a wait of an interval.
func TestRunPassesAtOnceDrainsAndForesees(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "backlog", 35, 0, 5)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until)
		values ('soon', 'leased', now() + interval '300 milliseconds'), ('never', 'leased', 'infinity')`)

	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{}), reaper.RunConfig{
		Batch: 10, Interval: time.Hour, MinInterval: time.Millisecond, Settle: 1,
	})

	require.Eventually(t, func() bool {
		return reapertest.One[int](t, pool, `select count(*)::int from job_queue where state = 'retry_waiting'`) == 36
	}, reapertest.Waiting, reapertest.Tick)
	require.Less(t, reapertest.One[float64](t, pool, `select extract(epoch from scheduled_at - interval '10 s' - now())::float8
		from job_queue where job_kind = 'soon'`), 0.0)
}

// Every machine runs the loop; a job must not lose two tries for it.
func TestReplicasRunTogether(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 500, 0, 5)
	for range 4 {
		reapertest.Run(t, reapertest.New(t, pool, reaper.Config{}), reaper.RunConfig{
			Batch: 10, Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: 1,
		})
	}

	require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == 500 }, reapertest.Waiting, reapertest.Tick)
	require.Equal(t, 500, reapertest.One[int](t, pool, `select sum(attempts)::int from job_queue`))
}

// An idle loop that asks more than once each time is a load on every database.
func TestAnIdlePassIsOneQuery(t *testing.T) {
	t.Parallel()
	pool, recorder := reapertest.Recording(t, reapertest.OpenQueue(t))
	passes := make(chan reaper.Pass, 100)
	stop := reapertest.Run(t, reapertest.New(t, pool, reaper.Config{}), reapertest.Quick(func(_ context.Context, p reaper.Pass) { passes <- p }))

	<-passes // the first applies
	before := recorder.Count()
	for range 10 {
		pass := <-passes
		require.NoError(t, pass.Err)
		require.Empty(t, pass.Result.Actions)
	}
	stop()
	require.LessOrEqual(t, recorder.Count()-before, 10+len(passes)+1)
}

// A log that repeats a closed gate twice a minute is a log that nobody reads.
func TestAClosedGateIsLoggedOncePerChange(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	log := &reapertest.Logbook{}
	passes := make(chan reaper.Pass, 1000)
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger()}),
		reapertest.Quick(func(_ context.Context, p reaper.Pass) { passes <- p }))

	for range 5 {
		require.Equal(t, "queue.job_substrate.enabled=false", (<-passes).Result.Reason)
	}
	require.Equal(t, 1, log.Count("reaper refused"))
	reapertest.OpenGates(t, pool)
	require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == 1 }, reapertest.Waiting, reapertest.Tick)
	require.Eventually(t, func() bool { return log.Count("reaper recovered") == 1 }, reapertest.Waiting, reapertest.Tick)
	require.Equal(t, 1, log.Count("reaped stale leases"))
}

// Whoever starts the service hears at once that a gate is closed, not when the
// first worker dies.
func TestRunMeetsAClosedGateAtItsStart(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	passes := make(chan reaper.Pass, 1000)
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{}), reapertest.Quick(func(_ context.Context, p reaper.Pass) { passes <- p }))

	require.True(t, (<-passes).Result.Refused)
	require.False(t, (<-passes).Result.Refused) // an idle loop does not ask
}

// The stale job is gone because its worker came back; the gate is as closed as
// before, and a log that says otherwise sends an operator the wrong way.
func TestALookDoesNotTellThatAGateIsOpen(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	log := &reapertest.Logbook{}
	passes := make(chan reaper.Pass, 1000)
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger()}),
		reapertest.Quick(func(_ context.Context, p reaper.Pass) { passes <- p }))
	require.True(t, (<-passes).Result.Refused)

	reapertest.Exec(t, pool, `update job_queue set state = 'succeeded', lease_until = null`)
	for (<-passes).Result.Refused { //nolint:revive // it waits for a look that finds nothing
	}
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	for !(<-passes).Result.Refused { //nolint:revive // it waits for the next refusal
	}
	require.Equal(t, 1, log.Count("reaper refused"))
	require.Zero(t, log.Count("reaper recovered"))
}

// A metric that panics must not end the only thing that gives jobs back.
func TestAPanicInOnPassDoesNotEndTheLoop(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	log := &reapertest.Logbook{}
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger()}),
		reapertest.Quick(func(context.Context, reaper.Pass) { panic("no such metric") }))

	require.Eventually(t, func() bool { return log.Count("on_pass panicked") >= 3 }, reapertest.Waiting, reapertest.Tick)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == 1 }, reapertest.Waiting, reapertest.Tick)
}

// A missing table, an empty setting: the loop says so once and goes on when it is
// mended.
func TestRunSurvivesWhatIsMissing(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	log := &reapertest.Logbook{}
	reapertest.Exec(t, pool, `alter table job_queue rename to elsewhere`)
	passes := make(chan reaper.Pass, 1000)
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger()}),
		reapertest.Quick(func(_ context.Context, p reaper.Pass) { passes <- p }))

	for range 5 {
		require.Error(t, (<-passes).Err)
	}
	require.Equal(t, 1, log.Count("pass failed"))
	reapertest.Exec(t, pool, `alter table elsewhere rename to job_queue`)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == 1 }, reapertest.Waiting, reapertest.Tick)
}

// Rejected jobs are tried again now and then, not at each wake-up of
// a busy queue, and logged once.
func TestRunDoesNotSpinOnBadRows(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
	reapertest.Stale(t, pool, "check", 3, 0, 5)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until)
		select 'good', 'leased', now() + make_interval(secs => i / 20.0) from generate_series(10, 20) i`)
	log := &reapertest.Logbook{}
	passes := make(chan reaper.Pass, 1000)
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger()}), reaper.RunConfig{
		Interval: time.Hour, MinInterval: time.Millisecond, Settle: 1,
		OnPass: func(_ context.Context, p reaper.Pass) { passes <- p },
	})

	failed, reaped := 0, 0
	for reaped < 11 {
		pass := <-passes
		require.NoError(t, pass.Err)
		failed += pass.Result.FailedCount
		reaped += pass.Result.ResetCount
	}
	require.Equal(t, 3, failed)
	require.Equal(t, 1, log.Count("jobs rejected"))
}

// A wrapper without QueryRow costs a transaction a look, and is served.
func TestRunOverADBWithBeginAlone(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	reapertest.Run(t, reapertest.New(t, onlyBegin{pool}, reaper.Config{}), reapertest.Quick(nil))

	require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == 1 }, reapertest.Waiting, reapertest.Tick)
	require.Eventually(t, func() bool { return idleConns(pool) }, reapertest.Waiting, reapertest.Tick)
}

func idleConns(pool *pgxpool.Pool) bool { return pool.Stat().AcquiredConns() <= 1 }
