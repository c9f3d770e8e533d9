package reaper_test

import (
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// A worker renews, finishes and claims while plans are applied. A job is reaped
// only as it was reviewed: with one try more than the plan said.
func TestApplyPlanAgainstARacingWorker(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 400, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{})
	plan := review(t, r, 400)
	stop := race(t, pool)

	skipped, reaped := 0, 0
	for first := 0; first < len(plan.Jobs); first += 20 {
		part := &reaper.DryRunResult{Jobs: plan.Jobs[first : first+20]}
		result, err := r.ApplyPlan(t.Context(), reapertest.Actor, part)
		require.NoError(t, err)
		require.Len(t, part.Jobs, len(result.Actions)+len(result.Skipped))
		skipped, reaped = skipped+len(result.Skipped), reaped+len(result.Actions)
	}

	renewed := stop()
	require.Equal(t, 400, skipped+reaped)
	require.Equal(t, reaped, reapertest.One[int](t, pool, `select count(*)::int from job_queue where last_error = 'lease_expired_reaped' and attempts = 1`))
	require.LessOrEqual(t, skipped, renewed+1) // a row may be locked by a renewal that is not counted yet
}

// race renews one lease after the other, newest first, until it is stopped, which
// returns how many it renewed.
func race(t *testing.T, pool *pgxpool.Pool) (stop func() int) {
	t.Helper()
	done, count := make(chan struct{}), make(chan int)
	go func() {
		renewed := 0
		defer func() { count <- renewed }()
		for {
			select {
			case <-done:
				return
			default:
			}
			tag, err := pool.Exec(t.Context(), `update job_queue set lease_until = now() + interval '1 hour'
				where job_id = (select job_id from job_queue where state = 'leased' and lease_until < now()
					order by lease_until desc limit 1 for update skip locked)`)
			if err != nil {
				return
			}
			renewed += int(tag.RowsAffected())
		}
	}()
	return func() int {
		close(done)
		select {
		case n := <-count:
			return n
		case <-time.After(reapertest.Waiting):
			t.Fatal("the worker did not stop")
			return 0
		}
	}
}
