package reaper_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A reaper that runs in vain, on every machine, is most of what a reaper does.
func TestAnApplyThatFindsNothingIsTwoExchanges(t *testing.T) {
	t.Parallel()
	pool, recorder := recording(t, openQueue(t))
	r := newReaper(t, pool, reaper.Config{})
	apply(t, r, 10) // its statements are prepared now

	before := recorder.count()
	require.Empty(t, apply(t, r, 10).Actions)
	require.Equal(t, 2, recorder.count()-before)
}

// A gate that stays closed for months is asked all that time: without a lock on
// it or on a job, and without a write.
func TestARefusalAgainAndAgainWritesNothing(t *testing.T) {
	t.Parallel()
	admin := pgtest.New(t)
	stale(t, admin, "kind", 3, 0, 5)
	exec(t, admin, `insert into queue_config (key, value) values ($1, 'true')`, gates.SubstrateEnabled)
	pool, recorder := recording(t, admin)
	r := newReaper(t, pool, reaper.Config{})
	refuse := func() {
		result, err := r.Apply(t.Context(), actor, 10)
		require.NoError(t, err)
		require.Equal(t, "queue.lease.reaper_enabled=false", result.Reason)
	}
	refuse()
	refuse() // its statements are prepared now
	locks := `select string_agg(xmax::text, ',' order by xmax::text) from
		(select xmax from job_queue union all select xmax from queue_config) x`
	marks, before := one[string](t, admin, locks), recorder.count()

	refuse()

	require.Equal(t, 2, recorder.count()-before)
	require.Equal(t, marks, one[string](t, admin, locks))
	openGates(t, admin)
	require.Len(t, apply(t, r, 10).Actions, 3)
	require.Empty(t, apply(t, r, 10).Actions)
}

// The claim travels with the gates' reading, and may fail where a closed gate
// would have kept it from being made. The gate is the answer then, as ever.
func TestAClosedGateWinsOverWhatTheClaimMeets(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `drop table job_queue`)

	result, err := newReaper(t, pool, reaper.Config{}).Apply(t.Context(), actor, 10)

	require.NoError(t, err)
	require.Equal(t, "queue.job_substrate.enabled=false", result.Reason)
}

// Over a slow link a reaper that asks once a row takes minutes for a batch.
func TestTheNumberOfRoundTripsIsConstant(t *testing.T) {
	t.Parallel()
	pool := withOracle(t, openQueue(t))
	traced, recorder := recording(t, pool)

	for _, mover := range []deadletter.Mover{deadletter.Table{}, deadletter.Function{}} {
		r := newReaper(t, traced, reaper.Config{DeadLetter: mover})
		apply(t, r, 1) // it looks at the tables once
		exchanges := func(jobs int) int {
			exec(t, pool, `truncate job_queue, job_dead_letter`)
			stale(t, pool, "retryable", jobs, 0, 5)
			stale(t, pool, "exhausted", jobs, 4, 5)
			recorder.exchanges = 0
			require.Len(t, apply(t, r, 10000).Actions, 2*jobs)
			return recorder.exchanges
		}
		require.Equal(t, exchanges(1), exchanges(2000))
		require.LessOrEqual(t, exchanges(1), 3)
	}
}
