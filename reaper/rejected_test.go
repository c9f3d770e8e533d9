package reaper_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// Jobs whose unique key is taken, say, are rejected each time. Tried every half
// minute they would cost two transactions each for ever.
func TestRunTriesRejectedJobsAfterLongerAndLongerWaits(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	exec(t, pool, poison["check"].sql)
	stale(t, pool, "check", 20, 0, 5)
	log := &logbook{}
	passes := make(chan reaper.Pass, 10_000)
	run(t, newReaper(t, pool, reaper.Config{Logger: log.logger()}), reaper.RunConfig{
		Interval: 20 * time.Millisecond, MinInterval: time.Millisecond, Settle: 1,
		OnPass: func(_ context.Context, pass reaper.Pass) { passes <- pass },
	})

	tries, others := 0, 0
	for others < 60 { // intervals; the waits are 1, 2, 4, 8, ... of them
		pass := <-passes
		require.NoError(t, pass.Err)
		if pass.Result.FailedCount > 0 {
			require.Equal(t, 20, pass.Result.FailedCount)
			tries++
		} else {
			others++
		}
	}
	require.GreaterOrEqual(t, tries, 3)
	require.LessOrEqual(t, tries, 9)
	require.Equal(t, 1, log.count("jobs rejected"))

	stale(t, pool, "good", 20, 0, 5) // is reaped all the same
	require.Eventually(t, func() bool { return states(t, pool)["retry_waiting"] == 20 }, waiting, tick)
}

// A claim that leaves out thousands of jobs must still go through the index, and
// not compare each row with each of them.
func TestAClaimLeavesOutRejectedJobsByTheIndex(t *testing.T) {
	t.Parallel()
	const rejected, others, batch = 300, 300, 100
	pool := openQueue(t)
	exec(t, pool, poison["check"].sql+`; analyze job_queue`)
	stale(t, pool, "check", rejected, 0, 5)
	traced, recorder := recording(t, pool)
	run(t, newReaper(t, traced, reaper.Config{}), reaper.RunConfig{
		Batch: batch, Interval: time.Second, MinInterval: time.Millisecond, Settle: 1,
	})
	s := excludingClaim(t, recorder)
	stale(t, pool, "other", others, 0, 5)
	require.Equal(t, map[string]int{"other": batch}, claimedKinds(t, pool, s))

	tx := begin(t, pool)
	for _, settings := range planModes {
		exec(t, tx, settings+`; set local enable_sort = off`)
		p := explain(t, tx, s)
		require.Len(t, p.of("LockRows"), 1, p)
		require.Empty(t, p.of("Sort"), p)
		require.Len(t, p.scans("job_queue"), 1, p)
		require.Equal(t, "job_queue_lease_until_idx", p.scans("job_queue")[0].Index, p)
	}
}

// The worker of a rejected job was slow, not dead: it came back, and died later.
// That is another lease, and its job has not waited for it yet.
func TestARejectedJobThatWasRenewedIsTriedWithItsNextLease(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	exec(t, pool, poison["check"].sql)
	stale(t, pool, "check", 3, 0, 5)
	traced, recorder := recording(t, pool)
	run(t, newReaper(t, traced, reaper.Config{}), quick(nil))
	s := excludingClaim(t, recorder)
	require.Empty(t, claimedKinds(t, pool, s))

	exec(t, pool, `update job_queue set lease_until = now() where job_id = (select job_id from job_queue limit 1)`)

	require.Equal(t, map[string]int{"check": 1}, claimedKinds(t, pool, s))
}

// excludingClaim waits for a claim that leaves out jobs.
func excludingClaim(t *testing.T, recorder *recorder) sent {
	t.Helper()
	excluding := func() []sent {
		return slices.DeleteFunc(recorder.named("reaper.claim"), func(s sent) bool { return len(s.args) < 5 })
	}
	require.Eventually(t, func() bool { return len(excluding()) > 0 }, waiting, tick)
	return excluding()[0]
}

// claimedKinds runs a claim once more, and counts what it finds by kind.
func claimedKinds(t *testing.T, db *pgxpool.Pool, claim sent) map[string]int {
	t.Helper()
	rows, err := begin(t, db).Query(t.Context(), claim.sql, claim.args...)
	require.NoError(t, err)
	defer rows.Close()
	claimed, err := pgx.CollectRows(rows, pgx.RowToMap)
	require.NoError(t, err)
	kinds := map[string]int{}
	for _, job := range claimed {
		kind, ok := job["kind"].(string)
		require.True(t, ok)
		kinds[kind]++
	}
	require.NoError(t, rows.Err())
	return kinds
}
