package reaper_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// errEnd is the cause with which the tests end a Run.
var errEnd = errors.New("the test is over")

// quick is a loop that tests need not wait for.
func quick(onPass func(context.Context, reaper.Pass)) reaper.RunConfig {
	return reaper.RunConfig{Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: 1, OnPass: onPass}
}

// run starts a Run that ends with the test, and checks how it ends. stop ends it
// earlier.
func run(t testing.TB, r *reaper.Reaper, cfg reaper.RunConfig) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, actor, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel(errEnd)
		require.ErrorIs(t, <-ended, errEnd)
	})
	t.Cleanup(stop)
	return stop
}

// logbook is a log that a test reads while it is written.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), message)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// A job that was stale before the service started, one that becomes stale later,
// and a backlog of many batches are all given back without a wait of an interval.
func TestRunPassesAtOnceDrainsAndForesees(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	stale(t, pool, "backlog", 35, 0, 5)
	exec(t, pool, `insert into job_queue (job_kind, state, lease_until)
		values ('soon', 'leased', now() + interval '300 milliseconds'), ('never', 'leased', 'infinity')`)

	run(t, newReaper(t, pool, reaper.Config{}), reaper.RunConfig{
		Batch: 10, Interval: time.Hour, MinInterval: time.Millisecond, Settle: 1,
	})

	require.Eventually(t, func() bool {
		return one[int](t, pool, `select count(*)::int from job_queue where state = 'retry_waiting'`) == 36
	}, waiting, tick)
	require.Less(t, one[float64](t, pool, `select extract(epoch from scheduled_at - interval '10 s' - now())::float8
		from job_queue where job_kind = 'soon'`), 0.0)
}

// Every machine runs the loop; a job must not lose two tries for it.
func TestReplicasRunTogether(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	stale(t, pool, "kind", 500, 0, 5)
	for range 4 {
		run(t, newReaper(t, pool, reaper.Config{}), reaper.RunConfig{
			Batch: 10, Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: 1,
		})
	}

	require.Eventually(t, func() bool { return states(t, pool)["retry_waiting"] == 500 }, waiting, tick)
	require.Equal(t, 500, one[int](t, pool, `select sum(attempts)::int from job_queue`))
}

// An idle loop that asks more than once each time is a load on every database.
func TestAnIdlePassIsOneQuery(t *testing.T) {
	t.Parallel()
	pool, recorder := recording(t, openQueue(t))
	passes := make(chan reaper.Pass, 100)
	stop := run(t, newReaper(t, pool, reaper.Config{}), quick(func(_ context.Context, p reaper.Pass) { passes <- p }))

	<-passes // the first applies
	before := recorder.count()
	for range 10 {
		pass := <-passes
		require.NoError(t, pass.Err)
		require.Empty(t, pass.Result.Actions)
	}
	stop()
	require.LessOrEqual(t, recorder.count()-before, 10+len(passes)+1)
}

// A log that repeats a closed gate twice a minute is a log that nobody reads.
func TestAClosedGateIsLoggedOncePerChange(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	stale(t, pool, "kind", 1, 0, 5)
	log := &logbook{}
	passes := make(chan reaper.Pass, 1000)
	run(t, newReaper(t, pool, reaper.Config{Logger: log.logger()}),
		quick(func(_ context.Context, p reaper.Pass) { passes <- p }))

	for range 5 {
		require.Equal(t, "queue.job_substrate.enabled=false", (<-passes).Result.Reason)
	}
	require.Equal(t, 1, log.count("reaper refused"))
	openGates(t, pool)
	require.Eventually(t, func() bool { return states(t, pool)["retry_waiting"] == 1 }, waiting, tick)
	require.Eventually(t, func() bool { return log.count("reaper recovered") == 1 }, waiting, tick)
	require.Equal(t, 1, log.count("reaped stale leases"))
}

// Whoever starts the service hears at once that a gate is closed, not when the
// first worker dies.
func TestRunMeetsAClosedGateAtItsStart(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	passes := make(chan reaper.Pass, 1000)
	run(t, newReaper(t, pool, reaper.Config{}), quick(func(_ context.Context, p reaper.Pass) { passes <- p }))

	require.True(t, (<-passes).Result.Refused)
	require.False(t, (<-passes).Result.Refused) // an idle loop does not ask
}

// The stale job is gone because its worker came back; the gate is as closed as
// before, and a log that says otherwise sends an operator the wrong way.
func TestALookDoesNotTellThatAGateIsOpen(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	stale(t, pool, "kind", 1, 0, 5)
	log := &logbook{}
	passes := make(chan reaper.Pass, 1000)
	run(t, newReaper(t, pool, reaper.Config{Logger: log.logger()}),
		quick(func(_ context.Context, p reaper.Pass) { passes <- p }))
	require.True(t, (<-passes).Result.Refused)

	exec(t, pool, `update job_queue set state = 'succeeded', lease_until = null`)
	for (<-passes).Result.Refused { //nolint:revive // it waits for a look that finds nothing
	}
	stale(t, pool, "kind", 1, 0, 5)
	for !(<-passes).Result.Refused { //nolint:revive // it waits for the next refusal
	}
	require.Equal(t, 1, log.count("reaper refused"))
	require.Zero(t, log.count("reaper recovered"))
}

// A metric that panics must not end the only thing that gives jobs back.
func TestAPanicInOnPassDoesNotEndTheLoop(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	log := &logbook{}
	run(t, newReaper(t, pool, reaper.Config{Logger: log.logger()}),
		quick(func(context.Context, reaper.Pass) { panic("no such metric") }))

	require.Eventually(t, func() bool { return log.count("on_pass panicked") >= 3 }, waiting, tick)
	stale(t, pool, "kind", 1, 0, 5)
	require.Eventually(t, func() bool { return states(t, pool)["retry_waiting"] == 1 }, waiting, tick)
}

// A missing table, an empty setting: the loop says so once and goes on when it is
// mended.
func TestRunSurvivesWhatIsMissing(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	log := &logbook{}
	exec(t, pool, `alter table job_queue rename to elsewhere`)
	passes := make(chan reaper.Pass, 1000)
	run(t, newReaper(t, pool, reaper.Config{Logger: log.logger()}),
		quick(func(_ context.Context, p reaper.Pass) { passes <- p }))

	for range 5 {
		require.Error(t, (<-passes).Err)
	}
	require.Equal(t, 1, log.count("pass failed"))
	exec(t, pool, `alter table elsewhere rename to job_queue`)
	stale(t, pool, "kind", 1, 0, 5)
	require.Eventually(t, func() bool { return states(t, pool)["retry_waiting"] == 1 }, waiting, tick)
}

// Rejected jobs are tried again now and then, not at each wake-up of
// a busy queue, and logged once.
func TestRunDoesNotSpinOnBadRows(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	exec(t, pool, poison["check"].sql)
	stale(t, pool, "check", 3, 0, 5)
	exec(t, pool, `insert into job_queue (job_kind, state, lease_until)
		select 'good', 'leased', now() + make_interval(secs => i / 20.0) from generate_series(10, 20) i`)
	log := &logbook{}
	passes := make(chan reaper.Pass, 1000)
	run(t, newReaper(t, pool, reaper.Config{Logger: log.logger()}), reaper.RunConfig{
		Interval: time.Hour, MinInterval: time.Millisecond, Settle: 1,
		OnPass: func(_ context.Context, p reaper.Pass) { passes <- p },
	})

	failed, settled := 0, 0
	for settled < 11 {
		pass := <-passes
		require.NoError(t, pass.Err)
		failed += pass.Result.FailedCount
		settled += pass.Result.ResetCount
	}
	require.Equal(t, 3, failed)
	require.Equal(t, 1, log.count("jobs rejected"))
}

// A wrapper without QueryRow costs a transaction a look, and is served.
func TestRunOverADBWithBeginAlone(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	stale(t, pool, "kind", 1, 0, 5)
	run(t, newReaper(t, onlyBegin{pool}, reaper.Config{}), quick(nil))

	require.Eventually(t, func() bool { return states(t, pool)["retry_waiting"] == 1 }, waiting, tick)
	require.Eventually(t, func() bool { return idleConns(pool) }, waiting, tick)
}

func idleConns(pool *pgxpool.Pool) bool { return pool.Stat().AcquiredConns() <= 1 }
