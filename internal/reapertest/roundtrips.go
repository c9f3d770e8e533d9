package reapertest

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// RoundTrips counts the round trips of connections: what a client writes in one go is
// a turn, up to the first bytes that come back. Unlike a tracer it also sees what
// the driver does by itself.
type RoundTrips struct{ n atomic.Int64 }

// Of returns how many turns something takes.
func (c *RoundTrips) Of(do func()) int {
	before := c.n.Load()
	do()
	return int(c.n.Load() - before)
}

// countingConn is a connection whose turns are counted.
type countingConn struct {
	net.Conn
	turns  *RoundTrips
	silent atomic.Bool // nothing came back since the last write
}

func (c *countingConn) Write(content []byte) (int, error) {
	if c.silent.CompareAndSwap(false, true) {
		c.turns.n.Add(1)
	}
	return c.Conn.Write(content)
}

func (c *countingConn) Read(content []byte) (int, error) {
	n, err := c.Conn.Read(content)
	if n > 0 {
		c.silent.Store(false)
	}
	return n, err
}

// CountRoundTrips is a pool of one connection whose turns are counted.
func CountRoundTrips(t *testing.T, pool *pgxpool.Pool, change func(*pgxpool.Config)) (*pgxpool.Pool, *RoundTrips) {
	t.Helper()
	counted := &RoundTrips{}
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ShouldPing = NoPing
		change(c)
		dial := c.ConnConfig.DialFunc
		c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return &countingConn{Conn: conn, turns: counted}, err
		}
	}), counted
}

// Mixed makes a queue of n jobs with stale leases, one in ten of them spent, or
// the only one.
func Mixed(t testing.TB, db Execer, n int) {
	t.Helper()
	Exec(t, db, `truncate job_queue, job_dead_letter`)
	Exec(t, db, `insert into job_queue (job_kind, state, attempts, lease_until)
		select 'kind', 'leased', case when i % 10 = 1 then 4 else 0 end, now() - make_interval(secs => i)
		from generate_series(1, $1::int) i`, n)
}
