package stmt_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A claim that leaves out thousands of jobs must still go through the index, and
// not compare each row with each of them.
func TestAClaimLeavesOutRejectedJobsByTheIndex(t *testing.T) {
	t.Parallel()
	const rejected, others, batch = 40, 300, 20
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL+`; analyze job_queue`)
	reapertest.Stale(t, pool, "check", rejected, 0, 5)
	traced, recorder := reapertest.Recording(t, pool)
	reapertest.Run(t, reapertest.New(t, traced, reaper.Config{}), reaper.RunConfig{
		Batch: batch, Interval: time.Second, MinInterval: time.Millisecond, Settle: 1,
	})
	s := excludingClaim(t, recorder)
	reapertest.Stale(t, pool, "other", others, 0, 5)
	require.Equal(t, map[string]int{"other": batch}, claimedKinds(t, pool, s))

	tx := reapertest.Begin(t, pool)
	for _, settings := range planModes {
		reapertest.Exec(t, tx, settings+`; set local enable_sort = off`)
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
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
	reapertest.Stale(t, pool, "check", 3, 0, 5)
	traced, recorder := reapertest.Recording(t, pool)
	stop := reapertest.Run(t, reapertest.New(t, traced, reaper.Config{}), reapertest.Quick(nil))
	s := excludingClaim(t, recorder)
	require.Empty(t, claimedKinds(t, pool, s))
	stop() // or the loop may hold the renewed job's row when the claim below comes by

	reapertest.Exec(t, pool, `update job_queue set lease_until = now() where job_id = (select job_id from job_queue limit 1)`)

	require.Equal(t, map[string]int{"check": 1}, claimedKinds(t, pool, s))
}

// excludingClaim waits for a claim that leaves out jobs.
func excludingClaim(t *testing.T, recorder *reapertest.Recorder) reapertest.Sent {
	t.Helper()
	excluding := func() []reapertest.Sent {
		return slices.DeleteFunc(recorder.Named("reaper.claim"), func(s reapertest.Sent) bool { return len(s.Args) < 5 })
	}
	require.Eventually(t, func() bool { return len(excluding()) > 0 }, reapertest.Waiting, reapertest.Tick)
	return excluding()[0]
}

// claimedKinds runs a claim once more, and counts what it finds by kind.
func claimedKinds(t *testing.T, db *pgxpool.Pool, claim reapertest.Sent) map[string]int {
	t.Helper()
	rows, err := reapertest.Begin(t, db).Query(t.Context(), claim.SQL, claim.Args...)
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
