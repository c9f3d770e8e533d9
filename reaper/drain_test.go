package reaper_test

import (
	"context"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A backlog of many batches is reaped by one call, and the sums are right.
func TestDrainReapsTheBacklog(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ batch, batches int }{
		"in batches that come out even":   {25, 10},
		"in batches that leave a rest":    {60, 5},
		"in one batch with room to spare": {1000, 1},
		"one by one":                      {1, 250},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "retryable", 200, 0, 5)
			reapertest.Stale(t, pool, "exhausted", 50, 4, 5)

			result, err := reapertest.New(t, pool, reaper.Config{}).Drain(t.Context(), reapertest.Actor, test.batch)

			require.NoError(t, err)
			require.Equal(t, &reaper.DrainResult{Batches: test.batches, ResetCount: 200, DeadLetterCount: 50}, result)
			require.Equal(t, map[string]int{"retry_waiting": 200, "dead_letter": 50}, reapertest.States(t, pool))
		})
	}
}

// Jobs that share one instant, as a worker's that claimed them together do, must
// neither be reaped twice nor be passed by at the edge of a batch.
func TestDrainGoesThroughLeasesThatEndTogether(t *testing.T) {
	t.Parallel()
	for _, leaseUntil := range []string{"2026-01-01 00:00:00.000001+00", "-infinity", "0044-03-15 00:00:00+00 BC"} {
		pool := reapertest.OpenQueue(t)
		reapertest.Stale(t, pool, "kind", 100, 0, 5)
		reapertest.Exec(t, pool, `update job_queue set lease_until = $1::text::timestamptz`, leaseUntil)

		result, err := reapertest.New(t, pool, reaper.Config{}).Drain(t.Context(), reapertest.Actor, 7)

		require.NoError(t, err)
		require.Equal(t, 100, result.ResetCount)
		require.Equal(t, 100, reapertest.One[int](t, pool, `select sum(attempts)::int from job_queue`))
	}
}

// A full batch of bad rows at the head of the queue would stop a reaper that
// starts from the head each time.
func TestDrainPassesBadAndLockedRows(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
	reapertest.Stale(t, pool, "good", 30, 0, 5)
	reapertest.Stale(t, pool, "check", 30, 0, 5)
	reapertest.Stale(t, pool, "locked", 30, 0, 5)
	reapertest.Exec(t, pool, `update job_queue set lease_until = lease_until - interval '1 hour' where job_kind <> 'good'`)
	worker := reapertest.Begin(t, pool)
	reapertest.Exec(t, worker, `select from job_queue where job_kind = 'locked' for update`)
	r := reapertest.New(t, pool, reaper.Config{})

	result, err := r.Drain(t.Context(), reapertest.Actor, 10)

	require.NoError(t, err)
	require.Equal(t, &reaper.DrainResult{Batches: 6, ResetCount: 30, FailedCount: 30}, result)
	require.NoError(t, worker.Rollback(t.Context()))
	again, err := r.Drain(t.Context(), reapertest.Actor, 10)
	require.NoError(t, err)
	require.Equal(t, 30, again.ResetCount)
}

// An operator who closes a gate in the middle of a drain means the rest of it.
func TestDrainStopsWhenAGateCloses(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 50, 0, 5)
	batches := 0
	r := reapertest.New(t, pool, reaper.Config{OnApply: func(ctx context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error {
		batches++
		if batches < 3 {
			return nil
		}
		_, err := tx.Exec(ctx, `update queue_config set value = 'false' where key = $1`, gates.ReaperEnabled)
		return err
	}})

	result, err := r.Drain(t.Context(), reapertest.Actor, 10)

	require.NoError(t, err)
	require.Equal(t, &reaper.DrainResult{
		Refused: true, Reason: "queue.lease.reaper_enabled=false", Batches: 3, ResetCount: 30,
	}, result)
	require.JSONEq(t, `{"refused":true,"reason":"queue.lease.reaper_enabled=false","batches":3,"reset_count":30,
		"dead_letter_count":0,"failed_count":0}`, reapertest.JSON(t, result))
}

// When it breaks in the middle, what was committed was committed, and the caller
// must hear how much.
func TestDrainTellsWhatItCommittedBeforeAnError(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "young", 10, 0, 5)
	reapertest.Stale(t, pool, "dying", 10, 4, 5)
	reapertest.Exec(t, pool, `update job_queue set lease_until = lease_until - interval '1 hour' where job_kind = 'young'`)
	reapertest.Exec(t, pool, `drop table job_dead_letter`)

	result, err := reapertest.New(t, pool, reaper.Config{}).Drain(t.Context(), reapertest.Actor, 10)

	require.Error(t, err)
	require.Equal(t, &reaper.DrainResult{Batches: 1, ResetCount: 10}, result)
	require.Equal(t, map[string]int{"retry_waiting": 10, "leased": 10}, reapertest.States(t, pool))
}

// Bad input is the same as an apply's.
func TestDrainChecksItsInput(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := reapertest.New(t, pool, reaper.Config{DeadLetter: deadletter.Function{}})

	_, err := r.Drain(t.Context(), reapertest.Actor, 0)
	require.ErrorIs(t, err, reaper.ErrLimit)
	_, err = r.Drain(t.Context(), "\xff", 1)
	require.ErrorIs(t, err, reaper.ErrActor)
	refused, err := r.Drain(t.Context(), " ", 1)
	require.NoError(t, err)
	require.Equal(t, &reaper.DrainResult{Refused: true, Reason: reaper.ReasonActorRequired}, refused)
}
