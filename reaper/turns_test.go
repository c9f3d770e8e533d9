package reaper_test

import (
	"cmp"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// turns counts the round trips of connections: what a client writes in one go is
// a turn, up to the first bytes that come back. Unlike a tracer it also sees what
// the driver does by itself.
type turns struct{ n atomic.Int64 }

// of returns how many turns something takes.
func (c *turns) of(do func()) int {
	before := c.n.Load()
	do()
	return int(c.n.Load() - before)
}

// turningConn is a connection whose turns are counted.
type turningConn struct {
	net.Conn
	turns  *turns
	silent atomic.Bool // nothing came back since the last write
}

func (c *turningConn) Write(content []byte) (int, error) {
	if c.silent.CompareAndSwap(false, true) {
		c.turns.n.Add(1)
	}
	return c.Conn.Write(content)
}

func (c *turningConn) Read(content []byte) (int, error) {
	n, err := c.Conn.Read(content)
	if n > 0 {
		c.silent.Store(false)
	}
	return n, err
}

// counting is a pool of one connection whose turns are counted.
func counting(t *testing.T, pool *pgxpool.Pool, change func(*pgxpool.Config)) (*pgxpool.Pool, *turns) {
	t.Helper()
	counted := &turns{}
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ShouldPing = noPing
		change(c)
		dial := c.ConnConfig.DialFunc
		c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return &turningConn{Conn: conn, turns: counted}, err
		}
	}), counted
}

// mixed makes a queue of n jobs with stale leases, one in ten of them spent, or
// the only one.
func mixed(t testing.TB, db execer, n int) {
	t.Helper()
	exec(t, db, `truncate job_queue, job_dead_letter`)
	exec(t, db, `insert into job_queue (job_kind, state, attempts, lease_until)
		select 'kind', 'leased', case when i % 10 = 1 then 4 else 0 end, now() - make_interval(secs => i)
		from generate_series(1, $1::int) i`, n)
}

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
		"a hook before the commit":          {cfg: reaper.Config{OnApply: noHook}, turns: 3},
		"settings from the code":            {cfg: reaper.Config{Gates: open}, turns: 2},
		"a backlog that may be too large":   {cfg: reaper.Config{MaxStale: 10_000}, turns: 3},
		"behind a pooler, types from Go":    {mode: pgx.QueryExecModeExec, turns: 2},
		"behind a pooler, simple protocol":  {mode: pgx.QueryExecModeSimpleProtocol, turns: 2},
		"behind a pooler, types asked for":  {mode: pgx.QueryExecModeDescribeExec, turns: 6},
		"types asked for once, then cached": {mode: pgx.QueryExecModeCacheDescribe, turns: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := withOracle(t, openQueue(t))
			pool, counted := counting(t, admin, func(c *pgxpool.Config) {
				c.ConnConfig.DefaultQueryExecMode = cmp.Or(test.mode, c.ConnConfig.DefaultQueryExecMode)
			})
			r := newReaper(t, pool, test.cfg)
			mixed(t, admin, 10)
			apply(t, r, 10) // its statements are prepared now
			for _, jobs := range []int{1, 1000, 5000} {
				mixed(t, admin, jobs)
				require.Equal(t, test.turns, counted.of(func() {
					require.Len(t, apply(t, r, 10_000).Actions, jobs)
				}), jobs)
			}
		})
	}
}

// Most of what a reaper does is to find nothing, on every machine, all day.
func TestTheTurnsOfDoingNothing(t *testing.T) {
	t.Parallel()
	admin := openQueue(t)
	pool, counted := counting(t, admin, func(*pgxpool.Config) {})
	r := newReaper(t, pool, reaper.Config{})
	idle := func() { require.Empty(t, apply(t, r, 10).Actions) }
	dry := func() {
		_, err := r.DryRun(t.Context(), 10)
		require.NoError(t, err)
	}

	idle() // its statements are prepared now
	require.Equal(t, 2, counted.of(idle))
	dry()
	require.Equal(t, 3, counted.of(dry))
	closeGate(t, admin)
	require.Equal(t, 2, counted.of(func() { refused(t, r) }))
	refused(t, r) // now without a lock, in a statement that is prepared now
	require.Equal(t, 2, counted.of(func() { refused(t, r) }))
}

// A loop that asks more than once an interval is a load on an idle database.
func TestTheTurnsOfAnIdleLoop(t *testing.T) {
	t.Parallel()
	pool, counted := counting(t, openQueue(t), func(*pgxpool.Config) {})
	loop := hold(t, newReaper(t, pool, reaper.Config{}), quick(nil))
	loop.pass(t) // it applies
	loop.pass(t) // the look's statement is prepared now

	for range 5 {
		require.Equal(t, 1, counted.of(func() { require.Empty(t, loop.pass(t).Result.Actions) }))
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
			admin := openQueue(t)
			pool, counted := counting(t, admin, func(*pgxpool.Config) {})
			r := newReaper(t, pool, reaper.Config{})
			mixed(t, admin, 10)
			_, err := r.Drain(t.Context(), actor, 20) // its statements are prepared now
			require.NoError(t, err)
			mixed(t, admin, test.jobs)

			require.Equal(t, test.turns, counted.of(func() {
				result, err := r.Drain(t.Context(), actor, 20)
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
// the server takes is nobody's promise.
func TestTheTurnsOverALongLink(t *testing.T) {
	t.Parallel()
	admin := openQueue(t)
	p := startLateProxy(t, admin.Config(), longLink, func([]byte) loss { return keep })
	pool, counted := counting(t, admin, p.reroute)
	r := newReaper(t, pool, reaper.Config{})
	waits := func(do func()) {
		began := time.Now()
		n := counted.of(do)
		require.LessOrEqual(t, n, mostWaits)
		require.GreaterOrEqual(t, time.Since(began), time.Duration(n)*longLink)
	}
	mixed(t, admin, 10)
	apply(t, r, 10) // its statements are prepared now
	mixed(t, admin, 1000)

	waits(func() { require.Len(t, apply(t, r, 1000).Actions, 1000) })
	waits(func() { require.Empty(t, apply(t, r, 1000).Actions) })
	closeGate(t, admin)
	waits(func() { refused(t, r) })
	refused(t, r) // and now without a lock
	waits(func() { refused(t, r) })
}
