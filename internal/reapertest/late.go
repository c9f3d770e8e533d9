package reapertest

import (
	"net"
	"slices"
	"sync"
	"time"
)

// late delays what the proxy writes to a connection by half of the delay, since a round
// trip has two ways.
func (p *Proxy) late(conn net.Conn) net.Conn {
	if p.delay == 0 {
		return conn
	}
	closed := make(chan struct{})
	c := &lateConn{
		Conn: conn, delay: p.delay / 2, underway: make(chan parcel, 1000),
		closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
	p.group.Go(c.deliver)
	return c
}

// lateConn is a connection that delays each write. The writes stay in order, and many can
// be under way at a time. A close loses the writes that are under way.
type lateConn struct {
	net.Conn
	delay    time.Duration
	underway chan parcel
	closed   chan struct{}
	close    func()
}

func (c *lateConn) Write(content []byte) (int, error) {
	select {
	case c.underway <- parcel{slices.Clone(content), time.Now().Add(c.delay)}:
		return len(content), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

// Close ends the connection.
func (c *lateConn) Close() error {
	c.close()
	return c.Conn.Close()
}

// deliver writes each parcel at its time, until the connection is closed. It drops errors,
// since the reader of the connection gets them too.
func (c *lateConn) deliver() {
	for {
		select {
		case next := <-c.underway:
			if !c.await(next.at) {
				return
			}
			if _, err := c.Conn.Write(next.content); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

// await waits until a time. It returns false if the connection is closed before.
func (c *lateConn) await(at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.closed:
		return false
	}
}

// parcel is the content of one write.
type parcel struct {
	content []byte
	at      time.Time // when it arrives
}
