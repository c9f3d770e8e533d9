package reapertest

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// Proxy passes PostgreSQL's protocol between clients on TCP and a server, late
// and with connections lost on purpose.
type Proxy struct {
	lose     func(message []byte) Loss // message: its type, then its body
	delay    time.Duration             // of a message and its answer together
	listener net.Listener
	dial     func(ctx context.Context) (net.Conn, error)
	group    sync.WaitGroup

	mu    sync.Mutex
	links map[*link]struct{}
}

// late makes what the proxy writes to a connection arrive after half of the
// delay: a message takes the one half, its answer the other.
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

// Reroute leads the connections of a pool through the proxy.
func (p *Proxy) Reroute(config *pgxpool.Config) {
	host, port, _ := net.SplitHostPort(p.listener.Addr().String())
	number, _ := net.LookupPort("tcp", port)
	config.ConnConfig.Host, config.ConnConfig.Port = host, uint16(number)
	config.ConnConfig.TLSConfig, config.ConnConfig.Fallbacks = nil, nil
}

// Cut loses every connection and returns how many there were.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
	return len(p.links)
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.serve(ctx, client) })
	}
}

func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	server, err := p.dial(ctx)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: p.late(client), server: p.late(server)}
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()

	p.group.Go(l.passAnswers)
	l.passMessages(p.lose)

	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// Loss says when a proxy loses the connection over which a message came.
type Loss int

// Losses.
const (
	Keep        Loss = iota
	LoseMessage      // the server never sees it
	LoseAnswer       // the server has done it, and the client does not hear so
	ForgeAnswer      // nor does it, but hears a FATAL error, as of a pooler that lost its server
)

// link is one client's connection, and the server's for it.
type link struct {
	client, server net.Conn
	loss           atomic.Int32 // of the next answer
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// passMessages passes what the client says, message by message.
func (l *link) passMessages(lose func([]byte) Loss) {
	defer l.close()
	in := bufio.NewReader(l.client)
	greeting, err := readFrame(in, 0) // it has no type
	if err != nil {
		return
	}
	if _, err := l.server.Write(greeting); err != nil {
		return
	}
	for {
		frame, err := readFrame(in, 1)
		if err != nil {
			return
		}
		switch verdict := lose(slices.Concat(frame[:1], frame[5:])); verdict {
		case Keep:
		case LoseMessage:
			return
		case LoseAnswer, ForgeAnswer:
			l.loss.Store(int32(verdict))
		}
		if _, err := l.server.Write(frame); err != nil {
			return
		}
	}
}

// passAnswers passes what the server says. Nothing of the answers to earlier
// messages is on its way any more when a client that waits for them sends the
// message whose answer is lost.
func (l *link) passAnswers() {
	defer l.close()
	fatal := pgproto3.ErrorResponse{
		Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "08006", Message: "server connection crashed",
	}
	forged, _ := fatal.Encode(nil)
	buffer := make([]byte, 1<<14)
	for {
		n, err := l.server.Read(buffer)
		if err != nil {
			return
		}
		switch Loss(l.loss.Load()) {
		case LoseAnswer:
			return
		case ForgeAnswer:
			_, _ = l.client.Write(forged)
			return
		}
		if _, err := l.client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// StartProxy starts a proxy to the server of a pool's configuration. It ends
// with the test.
func StartProxy(t *testing.T, server *pgxpool.Config, lose func([]byte) Loss) *Proxy {
	t.Helper()
	return StartLateProxy(t, server, 0, lose)
}

// StartLateProxy starts a proxy that is as far from the server as a round trip of
// that delay.
func StartLateProxy(t *testing.T, server *pgxpool.Config, delay time.Duration, lose func([]byte) Loss) *Proxy {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	network, address := pgconn.NetworkAddress(server.ConnConfig.Host, server.ConnConfig.Port)
	p := &Proxy{
		lose:     lose,
		delay:    delay,
		listener: listener,
		dial: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		links: map[*link]struct{}{},
	}
	ctx := t.Context()
	p.group.Go(func() { p.accept(ctx) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
		p.group.Wait()
	})
	return p
}

// readFrame reads a message: its type, if it has one, its length and its body.
func readFrame(in io.Reader, typeSize int) ([]byte, error) {
	header := make([]byte, typeSize+4)
	if _, err := io.ReadFull(in, header); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[typeSize:]) // of itself and the body
	body := make([]byte, length-4)
	_, err := io.ReadFull(in, body)
	return slices.Concat(header, body), err
}

// IsCommit recognises the simple query that ends a transaction.
func IsCommit(message []byte) bool {
	sql, isQuery := strings.CutPrefix(string(message), "Q")
	return isQuery && strings.EqualFold(strings.Trim(sql, "; \x00"), "commit")
}

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

// parcel is what was written at once.
type parcel struct {
	content []byte
	due     time.Time
}
