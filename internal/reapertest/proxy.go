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

// Proxy forwards PostgreSQL's protocol between clients on TCP and a server. It can delay
// messages and lose connections.
type Proxy struct {
	lose     func(message []byte) Loss // message has the type, then the body
	delay    time.Duration             // of a round trip
	listener net.Listener
	dial     func(ctx context.Context) (net.Conn, error)
	group    sync.WaitGroup

	mu    sync.Mutex
	links map[*link]struct{}
}

// Reroute makes a pool connect through the proxy.
func (p *Proxy) Reroute(config *pgxpool.Config) {
	host, port, _ := net.SplitHostPort(p.listener.Addr().String())
	number, _ := net.LookupPort("tcp", port)
	config.ConnConfig.Host, config.ConnConfig.Port = host, uint16(number)
	config.ConnConfig.TLSConfig, config.ConnConfig.Fallbacks = nil, nil
}

// Cut closes every connection and returns how many there were.
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

// Loss says whether and when a proxy closes the connection of a message.
type Loss int

// Losses.
const (
	Keep        Loss = iota
	LoseMessage      // before the server receives the message
	LoseAnswer       // after the server has answered, before the client receives the answer
	ForgeAnswer      // as LoseAnswer, but the client receives a FATAL error, as from a pooler
)

// link is one client's connection and the matching connection to the server.
type link struct {
	client, server net.Conn
	loss           atomic.Int32 // the Loss of the next answer
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// passMessages forwards the client's messages one by one.
func (l *link) passMessages(lose func([]byte) Loss) {
	defer l.close()
	in := bufio.NewReader(l.client)
	greeting, err := readFrame(in, 0) // the startup message has no type
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

// passAnswers forwards the server's answers. The client waits for each answer before its
// next message, so a loss cannot hit the answer to an earlier message.
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

// StartProxy starts a proxy to the server of a configuration. It ends with the test.
func StartProxy(t *testing.T, server *pgxpool.Config, lose func([]byte) Loss) *Proxy {
	t.Helper()
	return StartLateProxy(t, server, 0, lose)
}

// StartLateProxy starts a proxy that adds delay to each round trip.
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

// readFrame reads a message: its type of typeSize bytes, its length and its body.
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

// IsCommit reports whether a message is a simple query with commit.
func IsCommit(message []byte) bool {
	sql, isQuery := strings.CutPrefix(string(message), "Q")
	return isQuery && strings.EqualFold(strings.Trim(sql, "; \x00"), "commit")
}
