package reapertest

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// RoundTrips counts the round trips of connections. All that a client writes until it reads
// the next bytes is one round trip. Unlike a tracer it also counts what the driver sends by
// itself.
type RoundTrips struct{ n atomic.Int64 }

// Of returns how many round trips do takes.
func (c *RoundTrips) Of(do func()) int {
	before := c.n.Load()
	do()
	return int(c.n.Load() - before)
}

// countingConn is a connection whose round trips are counted.
type countingConn struct {
	net.Conn
	trips   *RoundTrips
	writing atomic.Bool // nothing was read since the last write
}

func (c *countingConn) Write(content []byte) (int, error) {
	if c.writing.CompareAndSwap(false, true) {
		c.trips.n.Add(1)
	}
	return c.Conn.Write(content)
}

func (c *countingConn) Read(content []byte) (int, error) {
	n, err := c.Conn.Read(content)
	if n > 0 {
		c.writing.Store(false)
	}
	return n, err
}

// CountRoundTrips returns a pool of one connection, and the count of its round trips.
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
			return &countingConn{Conn: conn, trips: counted}, err
		}
	}), counted
}

// Mixed replaces the jobs by n with stale leases. Every tenth one, from the first on, is
// moved by the next apply; the others are reset.
func Mixed(t testing.TB, db Execer, n int) {
	t.Helper()
	Exec(t, db, `truncate job_queue, job_dead_letter`)
	Exec(t, db, `insert into job_queue (job_kind, state, attempts, lease_until)
		select 'kind', 'leased', case when i % 10 = 1 then 4 else 0 end, now() - make_interval(secs => i)
		from generate_series(1, $1::int) i`, n)
}
