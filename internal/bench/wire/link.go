package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Link is a long way to a server: whatever is said arrives a while later, in
// either direction, as if the wire had that length. It is a proxy on the loopback
// interface.
type Link struct {
	delay            time.Duration
	network, address string // of the server
	listener         *net.TCPListener
	group            sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// NewLink opens a link to the server of a pool's configuration. The delay is that
// of one way.
func NewLink(ctx context.Context, server *pgxpool.Config, delay time.Duration) (*Link, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	l := &Link{delay: delay, listener: listener}
	l.network, l.address = pgconn.NetworkAddress(server.ConnConfig.Host, server.ConnConfig.Port)
	l.group.Go(func() { l.accept(ctx) })
	return l, nil
}

// Attach leads the connections of a pool over the link.
func (l *Link) Attach(config *pgxpool.Config) {
	address, ok := l.listener.Addr().(*net.TCPAddr)
	if !ok {
		return
	}
	config.ConnConfig.Host, config.ConnConfig.Port = address.IP.String(), address.AddrPort().Port()
}

// Close ends the link and all connections over it.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.mu.Lock()
	for _, conn := range l.conns {
		err = errors.Join(err, ignoreClosed(conn.Close()))
	}
	l.mu.Unlock()
	l.group.Wait()
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *Link) accept(ctx context.Context) {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(ctx, l.network, l.address)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, client, server)
		l.mu.Unlock()
		l.group.Go(func() { l.carry(client, server) })
		l.group.Go(func() { l.carry(server, client) })
	}
}

// parcel is what was read at once, and when it is due.
type parcel struct {
	content []byte
	due     time.Time
}

// carry carries what comes from one end to the other, until either closes.
func (l *Link) carry(from, to net.Conn) {
	parcels := make(chan parcel, 1024)
	l.group.Go(func() { deliver(parcels, to) })
	defer close(parcels)
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			parcels <- parcel{append([]byte(nil), buffer[:n]...), time.Now().Add(l.delay)}
		}
		if err != nil {
			return
		}
	}
}

// deliver writes each parcel when it is due. After the last it closes the far
// end, and it takes what comes after an error, so that its sender does not wait.
func deliver(parcels <-chan parcel, to io.WriteCloser) {
	defer func() { _ = to.Close() }()
	var err error
	for p := range parcels {
		<-time.After(time.Until(p.due))
		if err == nil {
			_, err = to.Write(p.content)
		}
	}
}
