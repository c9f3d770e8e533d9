package reaper_test

import (
	"context"
	"sync"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// Two replicas reap the same job, and it loses two tries or dies twice.
func TestApplyByManyReapersReapsEachLeaseOnce(t *testing.T) {
	t.Parallel()
	const reapers, retryable, exhausted = 8, 3000, 600
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "retryable", retryable, 1, 5)
	reapertest.Stale(t, pool, "exhausted", exhausted, 4, 5)

	seen := make(chan string, 2*(retryable+exhausted))
	var group sync.WaitGroup
	for range reapers {
		r := reapertest.New(t, pool, reaper.Config{})
		group.Go(func() {
			for {
				result, err := r.Apply(t.Context(), reapertest.Actor, 50)
				if err != nil {
					t.Error(err)
					return
				}
				if len(result.Actions) == 0 {
					return
				}
				for _, action := range result.Actions {
					seen <- action.JobID
				}
			}
		})
	}
	group.Wait()
	close(seen)

	ids := map[string]int{}
	for id := range seen {
		ids[id]++
	}
	// A reaper that found every row locked has left some; one more pass ends it.
	for _, action := range reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 1000).Actions {
		ids[action.JobID]++
	}
	require.Len(t, ids, retryable+exhausted)
	for id, times := range ids {
		require.Equal(t, 1, times, id)
	}
	require.Equal(t, map[string]int{"retry_waiting": retryable, "dead_letter": exhausted}, reapertest.States(t, pool))
	require.Equal(t, exhausted, reapertest.One[int](t, pool, `select count(distinct job_id)::int from job_dead_letter`))
	require.Equal(t, exhausted, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter`))
	require.Zero(t, reapertest.One[int](t, pool, `select count(*)::int from job_queue
		where attempts <> case job_kind when 'retryable' then 2 else 5 end`))
}

// A worker that was slow, not dead, acts while the reaper runs. What it did
// stands.
func TestApplyLeavesALeaseThatMovedOn(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ meanwhile, state string }{
		"renewed":   {`update job_queue set lease_until = now() + interval '1 minute' where job_kind = 'slow'`, "leased"},
		"finished":  {`update job_queue set state = 'succeeded', lease_owner = null, lease_until = null where job_kind = 'slow'`, "succeeded"},
		"cancelled": {`update job_queue set state = 'cancelled' where job_kind = 'slow'`, "cancelled"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "slow", 1, 0, 5)
			reapertest.Stale(t, pool, "dead", 2, 0, 5)
			slow := `select md5(q::text) from job_queue q where job_kind = 'slow'`

			// The worker's transaction is open while the reaper claims.
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			defer tx.Rollback(t.Context()) //nolint:errcheck // committed below
			reapertest.Exec(t, tx, test.meanwhile)
			during := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10)
			require.Equal(t, 2, during.ResetCount)
			require.NoError(t, tx.Commit(t.Context()))

			stands := reapertest.One[string](t, pool, slow)
			after := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10)
			require.Empty(t, after.Actions)
			require.Equal(t, stands, reapertest.One[string](t, pool, slow))
			require.Equal(t, 1, reapertest.States(t, pool)[test.state])
		})
	}
}

// The worker renews after the reaper's transaction began and before it claims:
// by the transaction's now() the lease was stale.
func TestApplyLeavesALeaseRenewedSinceItBegan(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "slow", 1, 0, 5)
	renew := gates.SourceFunc(func(ctx context.Context, tx pgx.Tx, keys []string) (gates.Values, error) {
		_, err := pool.Exec(ctx, `update job_queue set lease_until = now() + interval '1 minute'`)
		values, _ := reapertest.OpenGate.Read(ctx, tx, keys)
		return values, err
	})

	result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{Gates: renew}), 10)

	require.Empty(t, result.Actions)
	require.Equal(t, 0, reapertest.One[int](t, pool, `select attempts from job_queue`))
}

// A worker that comes back while its job is being reaped must wait and then find
// its lease gone; were it not so, its late result would overwrite the reset.
func TestApplyHoldsOffAWorkerThatComesBackLate(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "late", 1, 4, 5)
	finished := make(chan int64, 1)
	mover := deadletter.MoverFunc(func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
		go func() {
			tag, err := pool.Exec(ctx, `update job_queue set state = 'succeeded', lease_until = null
				where job_id = $1 and lease_owner = 'worker-1' and state = 'leased'`, batch.Jobs[0].ID)
			if err != nil {
				finished <- -1
			}
			finished <- tag.RowsAffected()
		}()
		reapertest.WaitForLock(t, pool, "update job_queue set state = 'succeeded'%")
		return deadletter.Table{}.Move(ctx, tx, batch)
	})

	result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{DeadLetter: mover}), 10)

	require.Equal(t, 1, result.DeadLetterCount)
	require.Zero(t, <-finished)
	require.Equal(t, map[string]int{"dead_letter": 1}, reapertest.States(t, pool))
}
