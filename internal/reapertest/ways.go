package reapertest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// ReapAlike requires that a dry run, an apply and the rows agree.
func ReapAlike(t *testing.T, pool *pgxpool.Pool, mover deadletter.Mover) {
	t.Helper()
	ctx := t.Context()
	Exec(t, pool, `truncate job_queue, job_dead_letter`)
	Stale(t, pool, "retryable", 3, 0, 5)
	Stale(t, pool, "exhausted", 2, 4, 5)
	Exec(t, pool, `insert into job_queue (job_kind, state, lease_until) values
		('old', 'leased', '0044-03-15 12:00:00.000001+00 BC'), ('older', 'leased', '-infinity')`)
	r := New(t, pool, reaper.Config{DeadLetter: mover})

	dryRun, err := r.DryRun(ctx, 100)
	require.NoError(t, err)
	result := Apply(t, r, 100)

	require.Len(t, dryRun.Jobs, 7)
	require.Equal(t, "older", dryRun.Jobs[0].JobKind)
	require.Contains(t, JSON(t, dryRun.Jobs[1]), `"0044-03-15T12:00:00.000001Z BC"`)
	require.Equal(t, 5, result.ResetCount)
	require.Equal(t, 2, result.DeadLetterCount)
	for i, action := range result.Actions {
		require.Equal(t, dryRun.Jobs[i].JobID, action.JobID)
		if action.Action == reaper.ActionReset {
			require.True(t, One[bool](t, pool,
				`select scheduled_at = $1::timestamptz from job_queue where job_id = $2::uuid`,
				action.ScheduledAt, action.JobID), "the result and the row agree")
		}
	}
	require.Empty(t, Apply(t, r, 100).Actions)
}

// ReapInEveryWay calls DryRun, Apply, Drain, Run and Verify on a pool whose database has the
// reference tables and functions, and requires that each works.
func ReapInEveryWay(t *testing.T, pool *pgxpool.Pool, mover deadletter.Mover) {
	t.Helper()
	ReapAlike(t, pool, mover)
	cfg := reaper.Config{DeadLetter: mover}
	r := New(t, pool, cfg)

	Exec(t, pool, `truncate job_queue, job_dead_letter`)
	Stale(t, pool, "retryable", 5, 0, 5)
	Stale(t, pool, "exhausted", 5, 4, 5)
	drained, err := r.Drain(t.Context(), Actor, 3)
	require.NoError(t, err)
	require.Equal(t, &reaper.DrainResult{Batches: 4, ResetCount: 5, DeadLetterCount: 5}, drained)

	stop := Run(t, r, Quick(nil))
	Stale(t, pool, "retryable", 2, 0, 5)
	Stale(t, pool, "exhausted", 3, 4, 5)
	require.Eventually(t, func() bool { return States(t, pool)["leased"] == 0 }, Waiting, Tick)
	stop()
	require.Equal(t, map[string]int{"retry_waiting": 7, "dead_letter": 8}, States(t, pool))
	require.Equal(t, 8, One[int](t, pool, `select count(*)::int from job_dead_letter`))

	require.Empty(t, Verify(t, pool, cfg).Problems)
}
