package reaper_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// Between two continents a round trip takes as long as the server needs for a
// hundred rows. A batch must not take more of them because it is larger.
func TestTheTurnsOfAnApply(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		cfg   reaper.Config
		mode  pgx.QueryExecMode
		turns int
	}{
		"as it comes":                       {turns: 2},
		"dead letters by a function":        {cfg: reaper.Config{DeadLetter: deadletter.Function{}}, turns: 3},
		"a hook before the commit":          {cfg: reaper.Config{OnApply: reapertest.NoHook}, turns: 3},
		"settings from the code":            {cfg: reaper.Config{Gates: reapertest.OpenGate}, turns: 2},
		"a backlog that may be too large":   {cfg: reaper.Config{MaxStale: 10_000}, turns: 3},
		"behind a pooler, types from Go":    {mode: pgx.QueryExecModeExec, turns: 2},
		"behind a pooler, simple protocol":  {mode: pgx.QueryExecModeSimpleProtocol, turns: 2},
		"behind a pooler, types asked for":  {mode: pgx.QueryExecModeDescribeExec, turns: 6},
		"types asked for once, then cached": {mode: pgx.QueryExecModeCacheDescribe, turns: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := reapertest.WithOracle(t, reapertest.OpenQueue(t))
			pool, counted := reapertest.CountRoundTrips(t, admin, func(c *pgxpool.Config) {
				c.ConnConfig.DefaultQueryExecMode = cmp.Or(test.mode, c.ConnConfig.DefaultQueryExecMode)
			})
			r := reapertest.New(t, pool, test.cfg)
			reapertest.Mixed(t, admin, 10)
			reapertest.Apply(t, r, 10) // its statements are prepared now
			for _, jobs := range []int{1, 1000, 5000} {
				reapertest.Mixed(t, admin, jobs)
				require.Equal(t, test.turns, counted.Of(func() {
					require.Len(t, reapertest.Apply(t, r, 10_000).Actions, jobs)
				}), jobs)
			}
		})
	}
}

// Most of what a reaper does is to find nothing, on every machine, all day.
func TestTheTurnsOfDoingNothing(t *testing.T) {
	t.Parallel()
	admin := reapertest.OpenQueue(t)
	pool, counted := reapertest.CountRoundTrips(t, admin, func(*pgxpool.Config) {})
	r := reapertest.New(t, pool, reaper.Config{})
	idle := func() { require.Empty(t, reapertest.Apply(t, r, 10).Actions) }
	dry := func() {
		_, err := r.DryRun(t.Context(), 10)
		require.NoError(t, err)
	}

	idle() // its statements are prepared now
	require.Equal(t, 2, counted.Of(idle))
	dry()
	require.Equal(t, 3, counted.Of(dry))
	reapertest.CloseGate(t, admin)
	require.Equal(t, 2, counted.Of(func() { reapertest.RequireRefused(t, r) }))
	reapertest.RequireRefused(t, r) // now without a lock, in a statement that is prepared now
	require.Equal(t, 2, counted.Of(func() { reapertest.RequireRefused(t, r) }))
}

// A loop that asks more than once an interval is a load on an idle database.
func TestTheTurnsOfAnIdleLoop(t *testing.T) {
	t.Parallel()
	pool, counted := reapertest.CountRoundTrips(t, reapertest.OpenQueue(t), func(*pgxpool.Config) {})
	loop := reapertest.Hold(t, reapertest.New(t, pool, reaper.Config{}), reapertest.Quick(nil))
	loop.Pass(t) // it applies
	loop.Pass(t) // the look's statement is prepared now

	for range 5 {
		require.Equal(t, 1, counted.Of(func() { require.Empty(t, loop.Pass(t).Result.Actions) }))
	}
}

// A drain is its batches and nothing else: no count before, no query between.
func TestTheTurnsOfADrain(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ jobs, batches, turns int }{
		"the last batch has room":       {90, 5, 5 * 2},
		"the last batch comes out even": {100, 5, 5*2 + 2},
		"there is nothing to do":        {0, 0, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := reapertest.OpenQueue(t)
			pool, counted := reapertest.CountRoundTrips(t, admin, func(*pgxpool.Config) {})
			r := reapertest.New(t, pool, reaper.Config{})
			reapertest.Mixed(t, admin, 10)
			_, err := r.Drain(t.Context(), reapertest.Actor, 20) // its statements are prepared now
			require.NoError(t, err)
			reapertest.Mixed(t, admin, test.jobs)

			require.Equal(t, test.turns, counted.Of(func() {
				result, err := r.Drain(t.Context(), reapertest.Actor, 20)
				require.NoError(t, err)
				require.Equal(t, test.batches, result.Batches)
			}))
		})
	}
}

// longLink is the round trip of a link that is long: each way takes half of it.
// mostWaits is how often an apply may wait for one.
const (
	longLink  = 5 * time.Millisecond
	mostWaits = 2
)

// Over a long link an answer is still on its way when the driver writes on. An
// apply must not wait more often for that: it takes the server's time and two
// round trips. That it takes these at least shows that the link is long; how long
// the server takes is not promised.
func TestTheTurnsOverALongLink(t *testing.T) {
	t.Parallel()
	admin := reapertest.OpenQueue(t)
	p := reapertest.StartLateProxy(t, admin.Config(), longLink, func([]byte) reapertest.Loss { return reapertest.Keep })
	pool, counted := reapertest.CountRoundTrips(t, admin, p.Reroute)
	r := reapertest.New(t, pool, reaper.Config{})
	waits := func(do func()) {
		began := time.Now()
		n := counted.Of(do)
		require.LessOrEqual(t, n, mostWaits)
		require.GreaterOrEqual(t, time.Since(began), time.Duration(n)*longLink)
	}
	reapertest.Mixed(t, admin, 10)
	reapertest.Apply(t, r, 10) // its statements are prepared now
	reapertest.Mixed(t, admin, 1000)

	waits(func() { require.Len(t, reapertest.Apply(t, r, 1000).Actions, 1000) })
	waits(func() { require.Empty(t, reapertest.Apply(t, r, 1000).Actions) })
	reapertest.CloseGate(t, admin)
	waits(func() { reapertest.RequireRefused(t, r) })
	reapertest.RequireRefused(t, r) // and now without a lock
	waits(func() { reapertest.RequireRefused(t, r) })
}
