package work_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/work"
)

const rows = `select string_agg(concat_ws(' ', state, attempts, lease_owner), ', ' order by state) from job_queue`

// A deployment stops every worker. Its jobs would begin again elsewhere, after their
// leases, and with a try less.
func TestAStoppedWorkerLeavesNothingBehind(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		grace    time.Duration
		returns  bool // before the grace is over
		outcome  work.Outcome
		rows     string
		attempts int
	}{
		"a job that ends in its grace": {time.Minute, true, work.Succeeded, "ready 0, succeeded 0", 0},
		"one that does not":            {time.Nanosecond, false, work.GivenBack, "ready 0, ready 0", 0},
		"one with a failed try":        {time.Nanosecond, false, work.GivenBack, "retry_waiting 2, retry_waiting 2", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			enqueue(t, pool, 2, 5) // the second one waits for the only slot
			fixture.Exec(t, pool, `update job_queue set attempts = $1::int,
				state = case $1::int when 0 then 'ready' else 'retry_waiting' end`, test.attempts)
			running, release := make(chan struct{}, 2), make(chan struct{})
			c := start(t, pool, time.Minute, work.Config{
				Slots: 1, Grace: test.grace,
				Handlers: one(func(ctx context.Context, _ queue.Job) (work.Done, error) {
					running <- struct{}{}
					select {
					case <-release:
						return work.Done{}, nil
					case <-ctx.Done():
						return work.Done{}, ctx.Err()
					}
				}),
			})
			<-running
			c.halt()
			if test.returns {
				close(release)
			}

			require.NoError(t, c.stop())
			require.Equal(t, test.outcome, c.next(t).Outcome)
			require.Empty(t, c.ends)
			require.Empty(t, running)
			require.Equal(t, test.rows, fixture.One[string](t, pool, rows))
		})
	}
}

// A handler that hangs would hold up the shutdown for ever; if its job were given
// back, two workers would be at it.
func TestAHandlerThatHangsKeepsItsLease(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	enqueue(t, pool, 1, 5)
	running, release := make(chan struct{}), make(chan struct{})
	c := start(t, pool, time.Minute, work.Config{
		Grace: time.Nanosecond, Patience: 50 * time.Millisecond,
		Handlers: one(func(context.Context, queue.Job) (work.Done, error) {
			close(running)
			<-release
			return work.Done{}, nil
		}),
	})
	<-running

	require.ErrorIs(t, c.stop(), work.ErrAbandoned)
	require.Equal(t, "leased", fixture.One[string](t, pool, `select state from job_queue`))
	close(release)
	require.Equal(t, work.Succeeded, c.next(t).Outcome)
}

// A claim is under way when the worker is stopped. Broken off, it could lease jobs
// that nobody knows of.
func TestJobsThatAreClaimedTooLateAreGivenBack(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	enqueue(t, pool, 3, 5)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // done below
	fixture.Exec(t, tx, `lock table job_queue in access exclusive mode`)
	c := start(t, pool, time.Minute, work.Config{
		Handlers: one(func(context.Context, queue.Job) (work.Done, error) {
			t.Error("a job was begun")
			return work.Done{}, nil
		}),
	})
	fixture.Waits(t, pool, "-- worker.claim%")
	c.halt()
	require.NoError(t, tx.Rollback(t.Context()))

	require.NoError(t, c.stop())
	for range 3 {
		require.Equal(t, work.GivenBack, c.next(t).Outcome)
	}
	require.Equal(t, "ready 0, ready 0, ready 0", fixture.One[string](t, pool, rows))
}
