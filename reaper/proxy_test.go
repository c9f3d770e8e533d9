package reaper_test

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

// loss says when a proxy loses the connection over which a message came.
type loss int

const (
	keep        loss = iota
	loseMessage      // the server never sees it
	loseAnswer       // the server has done it, and the client does not hear so
	forgeAnswer      // nor does it, but hears a FATAL error, as of a pooler that lost its server
)

// proxy passes PostgreSQL's protocol between clients on TCP and a server, late
// and with connections lost on purpose.
type proxy struct {
	lose     func(message []byte) loss // message: its type, then its body
	delay    time.Duration             // of a message and its answer together
	listener net.Listener
	dial     func(ctx context.Context) (net.Conn, error)
	group    sync.WaitGroup

	mu    sync.Mutex
	links map[*link]struct{}
}

// startProxy starts a proxy to the server of a pool's configuration. It ends
// with the test.
func startProxy(t *testing.T, server *pgxpool.Config, lose func([]byte) loss) *proxy {
	t.Helper()
	return startLateProxy(t, server, 0, lose)
}

// startLateProxy starts a proxy that is as far from the server as a round trip of
// that delay.
func startLateProxy(t *testing.T, server *pgxpool.Config, delay time.Duration, lose func([]byte) loss) *proxy {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	network, address := pgconn.NetworkAddress(server.ConnConfig.Host, server.ConnConfig.Port)
	p := &proxy{
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
		p.cut()
		p.group.Wait()
	})
	return p
}

// reroute leads the connections of a pool through the proxy.
func (p *proxy) reroute(config *pgxpool.Config) {
	host, port, _ := net.SplitHostPort(p.listener.Addr().String())
	number, _ := net.LookupPort("tcp", port)
	config.ConnConfig.Host, config.ConnConfig.Port = host, uint16(number)
	config.ConnConfig.TLSConfig, config.ConnConfig.Fallbacks = nil, nil
}

// cut loses every connection and returns how many there were.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
	return len(p.links)
}

func (p *proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.serve(ctx, client) })
	}
}

func (p *proxy) serve(ctx context.Context, client net.Conn) {
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
func (l *link) passMessages(lose func([]byte) loss) {
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
		case keep:
		case loseMessage:
			return
		case loseAnswer, forgeAnswer:
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
		switch loss(l.loss.Load()) {
		case loseAnswer:
			return
		case forgeAnswer:
			_, _ = l.client.Write(forged)
			return
		}
		if _, err := l.client.Write(buffer[:n]); err != nil {
			return
		}
	}
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

// isCommit recognises the simple query that ends a transaction.
func isCommit(message []byte) bool {
	sql, isQuery := strings.CutPrefix(string(message), "Q")
	return isQuery && strings.EqualFold(strings.Trim(sql, "; \x00"), "commit")
}
