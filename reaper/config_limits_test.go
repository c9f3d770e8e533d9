package reaper_test

import (
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A worker whose renewals come late keeps its job for the length of the grace,
// and a dry run says the same as an apply.
func TestGraceKeepsLeasesThatEndedLately(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		grace time.Duration
		want  int
	}{
		"no grace":               {0, 10},
		"a grace of a second":    {time.Second, 9},
		"a grace between":        {5500 * time.Millisecond, 5},
		"a grace beyond all":     {time.Hour, 0},
		"a grace beyond history": {1<<63 - 1, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			tx := reapertest.Begin(t, pool) // now() stands still
			reapertest.Stale(t, tx, "kind", 10, 0, 5)
			r := reapertest.New(t, tx, reaper.Config{Grace: test.grace})

			dryRun, err := r.DryRun(t.Context(), 100)
			require.NoError(t, err)
			result := reapertest.Apply(t, r, 100)

			require.Equal(t, test.want, dryRun.StaleLeaseCount)
			require.Len(t, dryRun.Jobs, test.want)
			require.Equal(t, test.want, result.ResetCount)
		})
	}
}

// A network that was cut off from the database makes every lease stale at once;
// giving all jobs away then would do the damage twice.
func TestMaxStaleRefusesAFlood(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 11, 0, 5)
	before := reapertest.Fingerprint(t, pool)

	refused, err := reapertest.New(t, pool, reaper.Config{MaxStale: 10}).Apply(t.Context(), reapertest.Actor, 100)
	require.NoError(t, err)
	require.JSONEq(t, `{"reason":"max_stale_exceeded","refused":true}`, reapertest.JSON(t, refused))
	require.Equal(t, before, reapertest.Fingerprint(t, pool))

	drained, err := reapertest.New(t, pool, reaper.Config{MaxStale: 10}).Drain(t.Context(), reapertest.Actor, 100)
	require.NoError(t, err)
	require.Equal(t, reaper.ReasonMaxStaleExceeded, drained.Reason)
	require.Len(t, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{MaxStale: 11}), 100).Actions, 11)
}

// A closed gate is the reason that an operator looks for first.
func TestMaxStaleComesAfterTheGates(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Stale(t, pool, "kind", 2, 0, 5)

	result, err := reapertest.New(t, pool, reaper.Config{MaxStale: 1}).Apply(t.Context(), reapertest.Actor, 10)

	require.NoError(t, err)
	require.Equal(t, "queue.job_substrate.enabled=false", result.Reason)
}

// A negative setting is a mistake, not a way to switch something off.
func TestNegativeSettingsAreErrors(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)

	_, err := reaper.New(pool, reaper.Config{Grace: -1, MaxStale: -1})
	require.ErrorIs(t, err, reaper.ErrNegative)
	require.Len(t, reapertest.Flatten(err), 2)

	r := reapertest.New(t, pool, reaper.Config{})
	err = r.Run(t.Context(), " ", reaper.RunConfig{Batch: -1, Interval: -1, MinInterval: -1, Settle: -1})
	require.ErrorIs(t, err, reaper.ErrNegative)
	require.ErrorIs(t, err, reaper.ErrActor)
	require.Len(t, reapertest.Flatten(err), 5)
	require.ErrorIs(t, r.Run(t.Context(), reapertest.Actor, reaper.RunConfig{Interval: time.Second, MinInterval: time.Minute}),
		reaper.ErrInvalidIntervals)
	require.ErrorIs(t, reapertest.New(t, reapertest.Begin(t, pool), reaper.Config{}).Run(t.Context(), reapertest.Actor, reaper.RunConfig{}),
		reaper.ErrInTransaction)
}
