package reaper_test

import (
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A reaper that runs in vain, on every machine, is most of what a reaper does.
func TestAnApplyThatFindsNothingIsTwoExchanges(t *testing.T) {
	t.Parallel()
	pool, recorder := reapertest.Recording(t, reapertest.OpenQueue(t))
	r := reapertest.New(t, pool, reaper.Config{})
	reapertest.Apply(t, r, 10) // its statements are prepared now

	before := recorder.Count()
	require.Empty(t, reapertest.Apply(t, r, 10).Actions)
	require.Equal(t, 2, recorder.Count()-before)
}

// A gate that stays closed for months is asked all that time: without a lock on
// it or on a job, and without a write.
func TestARefusalAgainAndAgainWritesNothing(t *testing.T) {
	t.Parallel()
	admin := pgtest.New(t)
	reapertest.Stale(t, admin, "kind", 3, 0, 5)
	reapertest.Exec(t, admin, `insert into queue_config (key, value) values ($1, 'true')`, gates.SubstrateEnabled)
	pool, recorder := reapertest.Recording(t, admin)
	r := reapertest.New(t, pool, reaper.Config{})
	refuse := func() {
		result, err := r.Apply(t.Context(), reapertest.Actor, 10)
		require.NoError(t, err)
		require.Equal(t, "queue.lease.reaper_enabled=false", result.Reason)
	}
	refuse()
	refuse() // its statements are prepared now
	locks := `select string_agg(xmax::text, ',' order by xmax::text) from
		(select xmax from job_queue union all select xmax from queue_config) x`
	marks, before := reapertest.One[string](t, admin, locks), recorder.Count()

	refuse()

	require.Equal(t, 2, recorder.Count()-before)
	require.Equal(t, marks, reapertest.One[string](t, admin, locks))
	reapertest.OpenGates(t, admin)
	require.Len(t, reapertest.Apply(t, r, 10).Actions, 3)
	require.Empty(t, reapertest.Apply(t, r, 10).Actions)
}

// The claim travels with the gates' reading, and may fail where a closed gate
// would have kept it from being made. The gate is the answer then, as ever.
func TestAClosedGateWinsOverWhatTheClaimMeets(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `drop table job_queue`)

	result, err := reapertest.New(t, pool, reaper.Config{}).Apply(t.Context(), reapertest.Actor, 10)

	require.NoError(t, err)
	require.Equal(t, "queue.job_substrate.enabled=false", result.Reason)
}

// Over a slow link a reaper that asks once a row takes minutes for a batch.
func TestTheNumberOfRoundTripsIsConstant(t *testing.T) {
	t.Parallel()
	pool := reapertest.WithOracle(t, reapertest.OpenQueue(t))
	traced, recorder := reapertest.Recording(t, pool)

	for _, mover := range []deadletter.Mover{deadletter.Table{}, deadletter.Function{}} {
		r := reapertest.New(t, traced, reaper.Config{DeadLetter: mover})
		reapertest.Apply(t, r, 1) // it looks at the tables once
		exchanges := func(jobs int) int {
			reapertest.Exec(t, pool, `truncate job_queue, job_dead_letter`)
			reapertest.Stale(t, pool, "retryable", jobs, 0, 5)
			reapertest.Stale(t, pool, "exhausted", jobs, 4, 5)
			recorder.Exchanges = 0
			require.Len(t, reapertest.Apply(t, r, 10000).Actions, 2*jobs)
			return recorder.Exchanges
		}
		require.Equal(t, exchanges(1), exchanges(2000))
		require.LessOrEqual(t, exchanges(1), 3)
	}
}
