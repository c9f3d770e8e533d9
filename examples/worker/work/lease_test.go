package work_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/work"
	"github.com/lease-governance/leasereaper/reaper"
)

// A job that takes longer than its lease, of a worker that is well, would be done
// again and again.
func TestALongJobKeepsItsLease(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	enqueue(t, pool, 1, 5)
	running, release := make(chan struct{}), make(chan struct{})
	c := start(t, pool, 3*time.Second, work.Config{Handlers: one(func(ctx context.Context, _ queue.Job) (work.Done, error) {
		close(running)
		<-release
		return work.Done{}, ctx.Err()
	})})
	<-running
	claimed := fixture.One[time.Time](t, pool, `select lease_until from job_queue`)
	fixture.Eventually(t, pool, `select now() > $1 from job_queue`, claimed)
	r, err := reaper.New(pool, reaper.Config{})
	require.NoError(t, err)
	result, err := r.Apply(t.Context(), "test-reaper", 10)
	require.NoError(t, err)
	require.Empty(t, result.Actions)
	close(release)

	require.Equal(t, work.Succeeded, c.next(t).Outcome)
}

// A worker that was cut off and is back goes on with a job that another has by
// now.
func TestAJobStopsWhenItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	enqueue(t, pool, 1, 5)
	running, causes := make(chan struct{}), make(chan error, 1)
	c := start(t, pool, 300*time.Millisecond, work.Config{
		Handlers: one(func(ctx context.Context, job queue.Job) (work.Done, error) {
			if job.Attempts > 0 {
				return work.Done{}, nil
			}
			close(running)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return work.Done{}, ctx.Err()
		}),
	})
	<-running
	reap(t, pool)

	require.ErrorIs(t, <-causes, queue.ErrLost)
	outcomes := []work.Outcome{c.next(t).Outcome, c.next(t).Outcome}
	require.ElementsMatch(t, []work.Outcome{work.Lost, work.Succeeded}, outcomes)
	require.Equal(t, "succeeded 1", fixture.One[string](t, pool, `select state || ' ' || attempts from job_queue`))
}

// A handler that does not listen ends its job late. The fence, and nothing else,
// keeps its effects out.
func TestALostJobThatEndsLateHasNoEffects(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	enqueue(t, pool, 1, 5)
	running, release := make(chan struct{}), make(chan struct{})
	c := start(t, pool, time.Hour, work.Config{ // no renewal tells it
		Handlers: one(func(_ context.Context, job queue.Job) (work.Done, error) {
			if job.Attempts == 0 {
				close(running)
				<-release
			}
			return work.Done{Effects: func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `insert into worker_receipt (job_id, done_by) values ($1, $2)`, job.ID, job.Owner)
				return err
			}}, nil
		}),
	})
	<-running
	reap(t, pool)
	require.Equal(t, work.Succeeded, c.next(t).Outcome)
	close(release)

	require.Equal(t, work.Lost, c.next(t).Outcome)
	require.Equal(t, 1, fixture.One[int](t, pool, `select count(*) from worker_receipt`))
}

// The database does not answer, and the lease runs out there: the worker has to stop
// by its own clock.
func TestAJobStopsWhenItsLeaseCannotBeRenewed(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	enqueue(t, pool, 1, 5)
	running, causes := make(chan struct{}), make(chan error, 1)
	c := start(t, pool, 3*time.Second, work.Config{
		Handlers: one(func(ctx context.Context, job queue.Job) (work.Done, error) {
			if job.Attempts > 0 {
				return work.Done{}, nil
			}
			select {
			case <-running:
				return work.Done{}, nil
			default:
			}
			close(running)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return work.Done{}, ctx.Err()
		}),
	})
	<-running
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // done below
	fixture.Exec(t, tx, `select from job_queue for update`)
	locked := fixture.One[time.Time](t, tx, `select lease_until from job_queue`)

	require.ErrorIs(t, <-causes, work.ErrNotRenewed)
	require.False(t, fixture.One[time.Time](t, pool, `select clock_timestamp()`).After(locked.Add(800*time.Millisecond)),
		"it stops when the lease ends, not later")
	require.Positive(t, c.log.count("lease was not renewed"))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, work.GivenBack, c.next(t).Outcome)
	require.Equal(t, work.Succeeded, c.next(t).Outcome)
	require.Zero(t, fixture.One[int](t, pool, `select attempts from job_queue`))
}
