package reaper_test

import (
	"net"
	"slices"
	"sync"
	"time"
)

// lateConn is a connection over which what is written arrives late, and in order.
// However much is under way, none of it waits for the rest to arrive. When the
// connection is closed, what is under way is lost.
type lateConn struct {
	net.Conn
	delay    time.Duration
	underway chan parcel
	closed   chan struct{}
	close    func()
}

// parcel is what was written at once.
type parcel struct {
	content []byte
	due     time.Time
}

// late makes what the proxy writes to a connection arrive after half of the
// delay: a message takes the one half, its answer the other.
func (p *proxy) late(conn net.Conn) net.Conn {
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

func (c *lateConn) Write(content []byte) (int, error) {
	select {
	case c.underway <- parcel{slices.Clone(content), time.Now().Add(c.delay)}:
		return len(content), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *lateConn) Close() error {
	c.close()
	return c.Conn.Close()
}

// deliver writes each parcel when it is due. It ends with the connection, whose
// readers and writers hear of an error themselves.
func (c *lateConn) deliver() {
	for {
		select {
		case next := <-c.underway:
			if !c.await(next.due) {
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

// await returns at a time, or earlier and false when the connection is closed.
func (c *lateConn) await(due time.Time) bool {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.closed:
		return false
	}
}
