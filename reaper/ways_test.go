package reaper_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// movers are those that the library brings.
var movers = map[string]deadletter.Mover{
	"with the table":    deadletter.Table{},
	"with the function": deadletter.Function{},
}

// reapInEveryWay calls everything that a Reaper has over a pool whose database
// has the reference tables and functions, and finds it all to work.
func reapInEveryWay(t *testing.T, pool *pgxpool.Pool, mover deadletter.Mover) {
	t.Helper()
	reapAlike(t, pool, mover)
	cfg := reaper.Config{DeadLetter: mover}
	r := newReaper(t, pool, cfg)

	exec(t, pool, `truncate job_queue, job_dead_letter`)
	stale(t, pool, "retryable", 5, 0, 5)
	stale(t, pool, "exhausted", 5, 4, 5)
	drained, err := r.Drain(t.Context(), actor, 3)
	require.NoError(t, err)
	require.Equal(t, &reaper.DrainResult{Batches: 4, ResetCount: 5, DeadLetterCount: 5}, drained)

	stop := run(t, r, quick(nil))
	stale(t, pool, "retryable", 2, 0, 5)
	stale(t, pool, "exhausted", 3, 4, 5)
	require.Eventually(t, func() bool { return states(t, pool)["leased"] == 0 }, waiting, tick)
	stop()
	require.Equal(t, map[string]int{"retry_waiting": 7, "dead_letter": 8}, states(t, pool))
	require.Equal(t, 8, one[int](t, pool, `select count(*)::int from job_dead_letter`))

	require.Empty(t, verify(t, pool, cfg).Problems)
}
