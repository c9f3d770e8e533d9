package reaper_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// crowd has a drain go on at the oldest leases of the queue, as far as others can
// tell, until the test ends.
func crowd(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	require.True(t, one[bool](t, begin(t, pool),
		`select pg_try_advisory_xact_lock(1279607123, 'job_queue'::regclass::oid::integer)`))
}

// What a crowded drain leaps over is nobody's unless it comes back for it, and a
// job that is turned away must not cost it a second try.
func TestACrowdedDrainGoesThroughTheBacklogOnce(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		leaseUntil string
		cfg        reaper.Config
	}{
		"leases that end one by one":           {leaseUntil: `now() - make_interval(secs => i)`},
		"leases that end in twenties":          {leaseUntil: `now() - make_interval(hours => 1 + i % 10)`},
		"leases that end together":             {leaseUntil: `'2026-01-01 00:00:00.000001+00'`},
		"leases that end before time began":    {leaseUntil: `'-infinity'`},
		"leases of which some are very old":    {leaseUntil: `case i % 4 when 0 then '-infinity' when 1 then '4713-11-25 BC' else now() - make_interval(secs => i) end`},
		"leases that ended microseconds apart": {leaseUntil: `now() - make_interval(secs => i / 1e6)`},
		"a maximum, and so step by step":       {leaseUntil: `now() - make_interval(secs => i)`, cfg: reaper.Config{MaxStale: 1000}},
		"a grace":                              {leaseUntil: `now() - make_interval(secs => 3600 + i)`, cfg: reaper.Config{Grace: time.Hour}},
	}
	for name, test := range tests {
		for batchName, batch := range map[string]int{"one by one": 1, "in sevens": 7, "in fifties": 50} {
			t.Run(name+", "+batchName, func(t *testing.T) {
				t.Parallel()
				pool := openQueue(t)
				exec(t, pool, poison["check"].sql)
				exec(t, pool, `insert into job_queue (job_kind, state, attempts, lease_until)
					select case i % 10 when 0 then 'check' else 'good' end, 'leased', i % 5, (`+test.leaseUntil+`)::timestamptz
					from generate_series(1, 200) i`)
				crowd(t, pool)

				result, err := newReaper(t, pool, test.cfg).Drain(t.Context(), actor, batch)

				require.NoError(t, err)
				result.Batches = 0 // where a batch begins is left to chance
				require.Equal(t, &reaper.DrainResult{ResetCount: 140, DeadLetterCount: 40, FailedCount: 20}, result)
				require.Equal(t, map[string]int{"leased": 20, "retry_waiting": 140, "dead_letter": 40}, states(t, pool))
				require.Equal(t, 580, one[int](t, pool, `select sum(attempts)::int from job_queue`))
			})
		}
	}
}

// Oldest first is the promise to those who wait longest, so no drain may break
// it when there is no reason to; and one that keeps it in a crowd is in the way.
func TestOnlyACrowdedDrainLeavesTheOrder(t *testing.T) {
	t.Parallel()
	for name, crowded := range map[string]bool{"alone": false, "in a crowd": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := openQueue(t)
			stale(t, pool, "kind", 200, 0, 5)
			if crowded {
				crowd(t, pool)
			}
			var ends []time.Time
			r := newReaper(t, pool, reaper.Config{OnApply: func(_ context.Context, _ pgx.Tx, result *reaper.ApplyResult) error {
				for _, action := range result.Actions {
					ends = append(ends, action.LeaseUntil)
				}
				return nil
			}})

			_, err := r.Drain(t.Context(), actor, 10)

			require.NoError(t, err)
			require.Len(t, ends, 200)
			require.Equal(t, !crowded, slices.IsSortedFunc(ends, time.Time.Compare))
		})
	}
}

// An apply takes the oldest leases, whoever else is at work: its caller gave a
// number, and may not come back.
func TestAnApplyAsksForNoCrowd(t *testing.T) {
	t.Parallel()
	pool, recorder := recording(t, openQueue(t))
	stale(t, pool, "old", 10, 0, 5)
	stale(t, pool, "young", 100, 0, 5)
	exec(t, pool, `update job_queue set lease_until = lease_until - interval '1 hour' where job_kind = 'old'`)
	crowd(t, pool)
	r := newReaper(t, pool, reaper.Config{})

	for range 2 {
		for _, action := range apply(t, r, 5).Actions {
			require.Equal(t, "old", action.JobKind)
		}
	}

	require.Empty(t, recorder.named("reaper.crowded"))
}

// Two replicas drain after the same crash. Here the second one does all of its
// work while the first one commits its first batch.
func TestDrainsThatMeetDivideTheBacklog(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	exec(t, pool, poison["check"].sql)
	stale(t, pool, "good", 100, 0, 5)
	stale(t, pool, "dying", 30, 4, 5)
	stale(t, pool, "check", 20, 0, 5)
	exec(t, pool, `update job_queue set lease_until = lease_until - interval '1 day' where job_id in
		(select job_id from job_queue where job_kind = 'good' limit 10)`)
	second := newReaper(t, pool, reaper.Config{})
	var others *reaper.DrainResult
	meet := sync.OnceValue(func() (err error) {
		others, err = second.Drain(t.Context(), actor, 10)
		return err
	})
	first := newReaper(t, pool, reaper.Config{
		OnApply: func(context.Context, pgx.Tx, *reaper.ApplyResult) error { return meet() },
	})

	result, err := first.Drain(t.Context(), actor, 10)

	require.NoError(t, err)
	require.Equal(t, 10, result.ResetCount)
	require.Equal(t, 90, others.ResetCount)
	require.Equal(t, 30, others.DeadLetterCount)
	require.Equal(t, 20, result.FailedCount)
	require.Equal(t, 20, others.FailedCount)
	require.Equal(t, 30, one[int](t, pool, `select count(distinct job_id)::int from job_dead_letter`))
	require.Equal(t, 100+5*30, one[int](t, pool, `select sum(attempts)::int from job_queue`))
}

// A loop remembers what it has seen and does not look there again for a while.
// What its drain leapt over would wait as long, or forever on a quiet queue.
func TestACrowdedRunSeesAllThatItLeapsOver(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	stale(t, pool, "kind", 500, 0, 5)
	crowd(t, pool)

	run(t, newReaper(t, pool, reaper.Config{}), reaper.RunConfig{Batch: 10, Interval: time.Hour, Settle: 1})

	require.Eventually(t, func() bool { return states(t, pool)["retry_waiting"] == 500 }, waiting, tick)
}

// A caller drains inside of a transaction, while a replica is at work.
func TestACrowdedDrainInACallersTransaction(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	stale(t, pool, "kind", 100, 0, 5)
	crowd(t, pool)
	tx := begin(t, pool)

	result, err := newReaper(t, tx, reaper.Config{}).Drain(t.Context(), actor, 10)

	require.NoError(t, err)
	require.Equal(t, 100, result.ResetCount)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, map[string]int{"retry_waiting": 100}, states(t, pool))
}

// Behind what it comes back for lies all that others are at work on. A drain that
// read on from there, row after row, would be slower than one that never leapt.
func TestAClaimReadsNoFurtherThanItsStretch(t *testing.T) {
	t.Parallel()
	pool, recorder := recording(t, openQueue(t))
	exec(t, pool, `insert into job_queue (job_kind, state, lease_until)
		select 'kind', 'leased', now() - make_interval(secs => i) from generate_series(1, 20000) i`)
	exec(t, pool, `analyze job_queue`)
	apply(t, newReaper(t, pool, reaper.Config{}), 1)

	claim := recorder.named("reaper.claim")[0]
	claim.args[1] = int64(20000)
	claim.args[2], claim.args[4] = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		tx := begin(t, pool)
		exec(t, tx, `set local plan_cache_mode = `+mode)
		for _, scan := range explain(t, tx, claim).scans("job_queue") {
			require.LessOrEqual(t, scan.rows(), 3601)
		}
		require.NoError(t, tx.Rollback(t.Context()))
	}
}
