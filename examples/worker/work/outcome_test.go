package work_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/work"
)

var errLuck = errors.New("no luck")

// What a handler does decides what becomes of its job. A panic that is not caught
// takes all other jobs of the process with it.
func TestAJobEndsAsItsHandlerSays(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, pgx.Tx) error { return nil }

	tests := map[string]struct {
		handler     work.Handler
		maxAttempts int
		outcome     work.Outcome
		row         string
		err         error
	}{
		"it succeeds": {
			handler:     func(context.Context, queue.Job) (work.Done, error) { return work.Done{}, nil },
			maxAttempts: 5, outcome: work.Succeeded, row: "succeeded 0",
		},
		"it succeeds with effects": {
			handler: func(context.Context, queue.Job) (work.Done, error) {
				return work.Done{Effects: nothing}, nil
			},
			maxAttempts: 5, outcome: work.Succeeded, row: "succeeded 0",
		},
		"it fails": {
			handler:     func(context.Context, queue.Job) (work.Done, error) { return work.Done{}, errLuck },
			maxAttempts: 5, outcome: work.Retried, row: "retry_waiting 1 no luck", err: errLuck,
		},
		"it fails for the last time": {
			handler:     func(context.Context, queue.Job) (work.Done, error) { return work.Done{}, errLuck },
			maxAttempts: 1, outcome: work.Buried, row: "dead_letter 1 no luck", err: errLuck,
		},
		"it panics": {
			handler:     func(context.Context, queue.Job) (work.Done, error) { panic("no luck") },
			maxAttempts: 5, outcome: work.Retried, row: "retry_waiting 1 panic: no luck",
		},
		"its effects fail": {
			handler: func(context.Context, queue.Job) (work.Done, error) {
				return work.Done{Effects: func(context.Context, pgx.Tx) error { return errLuck }}, nil
			},
			maxAttempts: 5, outcome: work.Retried, row: "retry_waiting 1 no luck", err: errLuck,
		},
		"its effects panic": {
			handler: func(context.Context, queue.Job) (work.Done, error) {
				return work.Done{Effects: func(context.Context, pgx.Tx) error { panic("no luck") }}, nil
			},
			maxAttempts: 5, outcome: work.Retried, row: "retry_waiting 1 panic: no luck",
		},
		"it panics when all is over": {
			handler: func(context.Context, queue.Job) (work.Done, error) {
				return work.Done{Committed: func() { panic("no luck") }}, nil
			},
			maxAttempts: 5, outcome: work.Succeeded, row: "succeeded 0",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			enqueue(t, pool, 1, test.maxAttempts)
			c := start(t, pool, time.Minute, work.Config{Handlers: one(test.handler)})

			end := c.next(t)

			require.Equal(t, test.outcome, end.Outcome, end.Err)
			if test.err != nil {
				require.ErrorIs(t, end.Err, test.err)
			}
			require.Equal(t, test.row, fixture.One[string](t, pool,
				`select concat_ws(' ', state, attempts, last_error, lease_owner) from job_queue`))
		})
	}
}

// A metric that is counted in a transaction that is then rolled back is wrong for
// ever.
func TestCommittedIsCalledAfterTheCommitAlone(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	tries, commits := atomic.Int32{}, make(chan string, 10)
	enqueue(t, pool, 1, 5)
	c := start(t, pool, time.Minute, work.Config{Handlers: one(func(ctx context.Context, _ queue.Job) (work.Done, error) {
		try := tries.Add(1)
		return work.Done{
			Effects: func(context.Context, pgx.Tx) error {
				if try == 1 {
					return errLuck
				}
				return nil
			},
			Committed: func() {
				var state string
				_ = pool.QueryRow(ctx, `select state from job_queue`).Scan(&state)
				commits <- state
			},
		}, nil
	})})

	require.Equal(t, work.Retried, c.next(t).Outcome)
	require.Empty(t, commits)
	require.Equal(t, work.Succeeded, c.next(t).Outcome)
	require.Equal(t, "succeeded", <-commits)
}

// Jobs beyond the slots would wait under a lease that nobody knows how to fill, and
// free slots in front of a full queue are money.
func TestSlotsAreAllThatRunAtOnce(t *testing.T) {
	t.Parallel()
	const slots, jobs = 3, 20
	pool := fixture.Queue(t)
	enqueue(t, pool, jobs, 5)
	running, release := make(chan struct{}, jobs), make(chan struct{})
	c := start(t, pool, time.Minute, work.Config{Slots: slots, Handlers: one(func(context.Context, queue.Job) (work.Done, error) {
		running <- struct{}{}
		<-release
		return work.Done{}, nil
	})})

	for range slots {
		<-running
	}
	require.Equal(t, slots, fixture.One[int](t, pool, `select count(*) from job_queue where state = 'leased'`))
	require.Empty(t, running)
	close(release)
	for range jobs {
		require.Equal(t, work.Succeeded, c.next(t).Outcome)
	}
}

// The database was away for an hour: the worker says so once, and goes on.
func TestAWorkerSurvivesWhatIsMissing(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	enqueue(t, pool, 1, 5)
	fixture.Exec(t, pool, `alter table job_queue rename to elsewhere`)
	c := start(t, pool, time.Minute, work.Config{Handlers: one(func(context.Context, queue.Job) (work.Done, error) {
		return work.Done{}, nil
	})})
	fixture.Eventually(t, pool, `select xact_rollback > 5 from pg_stat_database where datname = current_database()`)

	fixture.Exec(t, pool, `alter table elsewhere rename to job_queue`)
	require.Equal(t, work.Succeeded, c.next(t).Outcome)
	require.Equal(t, 1, c.log.count("cannot claim jobs"))
	require.Equal(t, 1, c.log.count("claims jobs again"))
}

// A configuration with a fault would be found when the first job comes.
func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := work.New(nil, work.Config{Slots: -1, Poll: -1, Grace: -1, Patience: -1})
	require.ErrorIs(t, err, work.ErrNoHandlers)
	require.ErrorIs(t, err, work.ErrNegative)
	for _, name := range []string{"Slots", "Poll", "Grace", "Patience"} {
		require.ErrorContains(t, err, name)
	}
}
