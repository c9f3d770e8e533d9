package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/reaper"
)

const kind = "send"

func open(t *testing.T, pool *pgxpool.Pool, cfg queue.Config) *queue.Queue {
	t.Helper()
	q, err := queue.New(pool, cfg)
	require.NoError(t, err)
	return q
}

func enqueue(t *testing.T, pool *pgxpool.Pool, maxAttempts int) string {
	t.Helper()
	id, err := queue.Enqueue(t.Context(), pool, queue.NewJob{Kind: kind, MaxAttempts: maxAttempts})
	require.NoError(t, err)
	return id
}

// claim claims the one job that there is.
func claim(t *testing.T, q *queue.Queue) queue.Job {
	t.Helper()
	jobs, err := q.Claim(t.Context(), []string{kind}, 10)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	return jobs[0]
}

// expire lets all leases end, and reap reaps them.
func expire(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	fixture.Exec(t, pool, `update job_queue set lease_until = now() - interval '1 second' where state = 'leased'`)
}

func reap(t *testing.T, pool *pgxpool.Pool) *reaper.ApplyResult {
	t.Helper()
	r, err := reaper.New(pool, reaper.Config{})
	require.NoError(t, err)
	result, err := r.Apply(t.Context(), "test-reaper", 100)
	require.NoError(t, err)
	require.False(t, result.Refused, result.Reason)
	return result
}

// deeds are all the ways to change a claimed job.
var deeds = map[string]func(ctx context.Context, q *queue.Queue, job queue.Job) error{
	"renew":     func(ctx context.Context, q *queue.Queue, job queue.Job) error { return q.Renew(ctx, job) },
	"complete":  func(ctx context.Context, q *queue.Queue, job queue.Job) error { return q.Complete(ctx, job, nil) },
	"give back": func(ctx context.Context, q *queue.Queue, job queue.Job) error { return q.GiveBack(ctx, job) },
	"retry": func(ctx context.Context, q *queue.Queue, job queue.Job) error {
		_, err := q.Fail(ctx, job, "no")
		return err
	},
	"bury": func(ctx context.Context, q *queue.Queue, job queue.Job) error {
		job.MaxAttempts = 1
		_, err := q.Fail(ctx, job, "no")
		return err
	},
}

// A worker that stood still comes back and ends a job that is another's by now, or
// its own for the second time: the job is done twice, or never.
func TestALostJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	const release = `update job_queue set state = 'ready', lease_owner = null, lease_until = null`

	tests := map[string]struct {
		reaped, byAnother, byItself bool
		then                        string // is done before another claim
	}{
		"reaped":                        {reaped: true},
		"reaped and claimed by another": {reaped: true, byAnother: true},
		"reaped and claimed by itself":  {reaped: true, byItself: true},
		"given to another":              {byAnother: true, then: release},
		"given to itself":               {byItself: true, then: release},
		"finished by someone else":      {then: `update job_queue set state = 'succeeded', lease_owner = null, lease_until = null`},
		"cancelled by someone else":     {then: `update job_queue set state = 'cancelled'`},
		"deleted":                       {then: `delete from job_queue`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			q := open(t, pool, queue.Config{Name: "slow"})
			enqueue(t, pool, 5)
			job := claim(t, q)

			if test.reaped {
				expire(t, pool)
				require.Equal(t, 1, reap(t, pool).ResetCount)
			}
			if test.then != "" {
				fixture.Exec(t, pool, test.then)
			}
			if test.byAnother {
				claim(t, open(t, pool, queue.Config{Name: "quick"}))
			}
			if test.byItself {
				claim(t, q)
			}
			requireLost(t, pool, q, job)
		})
	}
}

// requireLost wants no deed to change anything.
func requireLost(t *testing.T, pool *pgxpool.Pool, q *queue.Queue, job queue.Job) {
	t.Helper()
	row := `select coalesce((select q::text || q.xmin from job_queue q where job_id = $1), '')`
	before := fixture.One[string](t, pool, row, job.ID)
	for what, deed := range deeds {
		require.ErrorIs(t, deed(t.Context(), q, job), queue.ErrLost, what)
		require.Equal(t, before, fixture.One[string](t, pool, row, job.ID), what)
	}
	require.Zero(t, fixture.One[int](t, pool, `select count(*) from job_dead_letter`))
}

// The same lease, with attempts that somebody has reset: the owner alone would not
// tell.
func TestAttemptsArePartOfTheFence(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	q := open(t, pool, queue.Config{})
	enqueue(t, pool, 5)
	job := claim(t, q)
	fixture.Exec(t, pool, `update job_queue set attempts = 3`)

	requireLost(t, pool, q, job)
}

// A lease that has ended is the worker's until somebody reaps it; a worker that
// comes back in time keeps its job.
func TestARenewedLeaseIsNotReaped(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	q := open(t, pool, queue.Config{Lease: time.Minute})
	enqueue(t, pool, 5)
	job := claim(t, q)
	expire(t, pool)

	require.NoError(t, q.Renew(t.Context(), job))
	require.Empty(t, reap(t, pool).Actions)
	require.InDelta(t, 60, fixture.One[float64](t, pool,
		`select extract(epoch from lease_until - now())::float8 from job_queue`), 10)
	require.NoError(t, q.Complete(t.Context(), job, nil))
}

// A worker that is shut down would cost its jobs a try, or a wait.
func TestAJobThatIsGivenBackIsAsItWas(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		attempts int
		state    string
	}{
		"never tried":  {0, "ready"},
		"tried before": {2, "retry_waiting"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			q := open(t, pool, queue.Config{})
			enqueue(t, pool, 5)
			fixture.Exec(t, pool, `update job_queue set attempts = $1, state = $2, last_error = 'before'`, test.attempts, test.state)
			before := fixture.One[string](t, pool, `select q::text from job_queue q`)

			require.NoError(t, q.GiveBack(t.Context(), claim(t, q)))
			require.Equal(t, before, fixture.One[string](t, pool, `select q::text from job_queue q`))
		})
	}
}

// A typo in a configuration would be found by the first outage.
func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := queue.New(nil, queue.Config{Lease: -1, BackoffBaseSec: -1})
	require.ErrorIs(t, err, queue.ErrNegative)
	require.ErrorContains(t, err, "Lease")
	require.ErrorContains(t, err, "BackoffBaseSec")
}
