package reapjob_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/reapjob"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// A reap job that reaps and has no successor was the last one; one that has two
// doubles with each.
func TestTheReapJobReapsAndSchedulesItsSuccessor(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{Every: time.Minute})
	b.stale(t, 3)

	for range 5 {
		require.NoError(t, b.do(t, b.claim(t), well))
		require.Equal(t, 1, fixture.One[int](t, b.pool, live))
		require.InDelta(t, 60, fixture.One[float64](t, b.pool, `select extract(epoch from scheduled_at - now())::float8
			from job_queue where job_kind = 'queue.lease.reap' and state = 'ready'`), 10)
		fixture.Exec(t, b.pool, due)
	}

	require.Zero(t, fixture.One[int](t, b.pool, left))
	require.Len(t, b.passes, 5)
	require.Equal(t, 3, b.passes[0].Result.ResetCount)
	require.Positive(t, b.passes[0].Took)
	require.Equal(t, 2, fixture.One[int](t, b.pool, all), "the queue grows by a row for each reap job")
}

// The worker dies before the commit: neither the reaping nor the successor may have
// happened, and the job must still be there.
func TestACrashLeavesOneReapJob(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{})
	b.stale(t, 3)
	job := b.claim(t)

	require.ErrorIs(t, b.do(t, job, func() error { return errCrash }), errCrash)

	require.Empty(t, b.passes)
	require.Equal(t, 3, fixture.One[int](t, b.pool, left))
	require.Equal(t, 1, fixture.One[int](t, b.pool, live))
	require.Equal(t, "leased", fixture.One[string](t, b.pool, `select state from job_queue where job_id = $1`, job.ID))
	require.NoError(t, b.do(t, job, well))
	require.Equal(t, 1, fixture.One[int](t, b.pool, live))
}

// A worker that stood still comes back with a reap job that another has done: two
// chains would go on from here.
func TestALostReapJobHasNoSuccessor(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{})
	late := b.claim(t)
	b.watch(t)
	require.NoError(t, b.do(t, b.claim(t), well))
	b.stale(t, 1)

	require.ErrorIs(t, b.do(t, late, well), queue.ErrLost)
	require.Equal(t, 1, fixture.One[int](t, b.pool, live))
	require.Equal(t, 1, fixture.One[int](t, b.pool, left))
}

// The reap job's worker dies. Without a watchdog nothing is reaped any more: nobody
// can claim the reap job, and no second one can be added.
func TestADeadReapJobNeedsAWatchdog(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{})
	b.claim(t)
	fixture.Exec(t, b.pool, `update job_queue set lease_until = now() - interval '1 hour'`)
	require.NoError(t, b.job.Seed(t.Context()))
	jobs, err := b.queue.Claim(t.Context(), []string{reapjob.Kind}, 10)
	require.NoError(t, err)
	require.Empty(t, jobs)

	b.watch(t)

	b.stale(t, 1)
	require.NoError(t, b.do(t, b.claim(t), well))
	require.Zero(t, fixture.One[int](t, b.pool, left))
}

// Every worker adds the first reap job when it starts, all at once after a
// deployment, and while one is being completed.
func TestThereIsOneReapJobWhoeverAddsMore(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{})
	seedAll := func() error {
		var group sync.WaitGroup
		for range seeders {
			group.Go(func() {
				if err := b.job.Seed(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		return nil
	}
	require.NoError(t, seedAll())
	require.Equal(t, 1, fixture.One[int](t, b.pool, all))

	seeded := make(chan error, 1)
	require.NoError(t, b.do(t, b.claim(t), func() error {
		go func() { seeded <- seedAll() }()
		fixture.Waits(t, b.pool, "-- reapjob.schedule%")
		return nil
	}))
	require.NoError(t, <-seeded)
	require.Equal(t, 1, fixture.One[int](t, b.pool, live))
}

// The reap job was buried, or deleted by somebody who tidied up.
func TestSeedMendsABrokenChain(t *testing.T) {
	t.Parallel()

	tests := map[string]string{
		"buried":  `update job_queue set state = 'dead_letter'`,
		"deleted": `delete from job_queue`,
	}
	for name, breakIt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, reapjob.Config{})
			fixture.Exec(t, b.pool, breakIt)
			require.Zero(t, fixture.One[int](t, b.pool, live))

			require.NoError(t, b.job.Seed(t.Context()))
			require.NoError(t, b.do(t, b.claim(t), well))
			require.Equal(t, 1, fixture.One[int](t, b.pool, live))
		})
	}
}

// Operators close a gate for a while: the chain must be there when they open it.
func TestARefusalDoesNotEndTheChain(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{})
	b.stale(t, 1)
	fixture.Exec(t, b.pool, `update queue_config set value = 'false' where key = $1`, gates.ReaperEnabled)

	require.NoError(t, b.do(t, b.claim(t), well))
	require.True(t, b.passes[0].Result.Refused)
	require.Equal(t, 1, fixture.One[int](t, b.pool, live))
	require.Equal(t, 1, fixture.One[int](t, b.pool, left))
}

// A gate with a typo in it is an error of the job's, which fails and is tried again.
func TestAnErrorOfTheReapersIsTheJobs(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{})
	fixture.Exec(t, b.pool, `update queue_config set value = 'ture' where key = $1`, gates.ReaperEnabled)
	job := b.claim(t)

	err := b.do(t, job, well)

	var invalid *gates.ValueError
	require.ErrorAs(t, err, &invalid)
	require.Empty(t, b.passes)
	buried, err := b.queue.Fail(t.Context(), job, err.Error())
	require.NoError(t, err)
	require.False(t, buried)
	require.Equal(t, 1, fixture.One[int](t, b.pool, live))
}

// A backlog of ten thousand would take an hour, a batch every few seconds.
func TestAfterAFullBatchTheNextIsDueAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{Batch: 4, Every: time.Hour})
	b.stale(t, 10)

	for range 3 {
		require.NoError(t, b.do(t, b.claim(t), well))
	}
	require.Zero(t, fixture.One[int](t, b.pool, left))
	jobs, err := b.queue.Claim(t.Context(), []string{reapjob.Kind}, 1)
	require.NoError(t, err)
	require.Empty(t, jobs)
}

// A job of this kind that somebody else has made, with a payload of its own, fails
// instead of stopping the worker.
func TestAStrangePayloadIsTheJobsError(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{})
	_, err := b.job.Handle(t.Context(), queue.Job{Payload: []byte(`[]`)})
	require.Error(t, err)
}

// While the server was down no worker could renew. The reap job is the first to be
// claimed when it is back, and would give away the jobs of all of them.
func TestTheReapJobWaitsAfterARestart(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{Settle: 10 * 365 * 24 * time.Hour})
	b.stale(t, 1)

	for range 2 {
		require.NoError(t, b.do(t, b.claim(t), well))
		require.Equal(t, 1, fixture.One[int](t, b.pool, live))
		require.True(t, fixture.One[bool](t, b.pool, `select abs(extract(epoch from pg_postmaster_start_time()
			+ interval '3650 days' - scheduled_at)) < 10 from job_queue where job_kind = 'queue.lease.reap' and state = 'ready'`))
		fixture.Exec(t, b.pool, due)
	}

	require.Equal(t, 1, fixture.One[int](t, b.pool, left))
	require.Empty(t, b.passes)
}

// Nobody could write to the database for a while, which was no restart. A backlog
// looks the same: the jobs of dead workers must not wait behind it for ever.
func TestALateReapJobWaitsOnce(t *testing.T) {
	t.Parallel()
	b := open(t, reapjob.Config{Settle: time.Millisecond, Late: time.Minute})
	late := `update job_queue set scheduled_at = now() - interval '2 minutes' where job_kind = 'queue.lease.reap'`
	b.stale(t, 1)

	fixture.Exec(t, b.pool, late)
	require.NoError(t, b.do(t, b.claim(t), well))
	require.Equal(t, 1, fixture.One[int](t, b.pool, left))
	require.Equal(t, 1, fixture.One[int](t, b.pool, live))

	fixture.Exec(t, b.pool, late)
	require.NoError(t, b.do(t, b.claim(t), well))
	require.Zero(t, fixture.One[int](t, b.pool, left))
}

// A typo in a configuration would be found by the first dead worker.
func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := reapjob.New(nil, reapjob.Config{Batch: -1, Every: -1, Settle: -1, Late: -1})
	require.ErrorIs(t, err, reaper.ErrNilDB)
	require.ErrorIs(t, err, reapjob.ErrActor)
	require.ErrorIs(t, err, reapjob.ErrNegative)
	require.ErrorContains(t, err, "Batch")
	require.ErrorContains(t, err, "Every")
	require.ErrorContains(t, err, "Settle")
	require.ErrorContains(t, err, "Late")
}
