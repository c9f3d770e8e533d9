// Package wire stands between a client and its server: it counts what they say
// to each other, and can make the way longer.
package wire

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Counter counts exchanges: something is sent, and the sender waits for the
// answer before it sends more. Its methods may be called concurrently.
type Counter struct{ exchanges atomic.Int64 }

// Exchanges is how many there were.
func (c *Counter) Exchanges() int64 { return c.exchanges.Load() }

// Attach has the connections of a pool counted.
func (c *Counter) Attach(config *pgxpool.Config) {
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = c.counting(dial)
}

func (c *Counter) counting(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		counted := &countedConn{Conn: conn, counter: c}
		counted.answered.Store(true)
		return counted, nil
	}
}

// countedConn begins an exchange with the first write after an answer.
type countedConn struct {
	net.Conn
	counter  *Counter
	answered atomic.Bool
}

func (c *countedConn) Write(b []byte) (int, error) {
	if c.answered.Swap(false) {
		c.counter.exchanges.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.answered.Store(true)
	}
	return n, err
}
