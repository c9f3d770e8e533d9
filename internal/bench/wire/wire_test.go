package wire_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/wire"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// one has a pool make do with one connection, so that nothing but what a test says
// is said.
func one(config *pgxpool.Config) { config.MaxConns = 1 }

// The goals count exchanges. A counter that counts messages, or misses what a
// batch saves, would show the wrong library as the better one.
func TestCounterCountsExchanges(t *testing.T) {
	t.Parallel()
	counter := &wire.Counter{}
	pool := pgtest.Connect(t, pgtest.New(t), func(config *pgxpool.Config) { one(config); counter.Attach(config) })
	batch := func() {
		var b pgx.Batch
		for range 3 {
			b.Queue(`select 1`)
		}
		require.NoError(t, pool.SendBatch(t.Context(), &b).Close())
	}
	query := func() {
		_, err := pool.Exec(t.Context(), `select 1`)
		require.NoError(t, err)
	}
	query() // connects
	batch() // prepares

	tests := []struct {
		name string
		do   func()
		want int64
	}{
		{"a query", query, 1},
		{"three in a batch", batch, 1},
		{"a transaction", func() {
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `select 1`)
			require.NoError(t, err)
			require.NoError(t, tx.Commit(t.Context()))
		}, 3},
	}
	for _, test := range tests {
		before := counter.Exchanges()
		test.do()
		require.Equal(t, test.want, counter.Exchanges()-before, test.name)
	}
}

// A large batch leaves in several writes, and its answer comes in several reads. It
// is one exchange all the same.
func TestCounterDoesNotCountWrites(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	config, err := pgxpool.ParseConfig("")
	require.NoError(t, err)
	config.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) { return near, nil }
	counter := &wire.Counter{}
	counter.Attach(config)
	conn, err := config.ConnConfig.DialFunc(t.Context(), "", "")
	require.NoError(t, err)
	pass := func(from, to net.Conn) {
		sent := make(chan error, 1)
		go func() {
			_, err := from.Write([]byte("word"))
			sent <- err
		}()
		_, err := to.Read(make([]byte, 8))
		require.NoError(t, err)
		require.NoError(t, <-sent)
	}

	for range 2 {
		pass(conn, far)
		pass(conn, far)
		pass(far, conn)
		pass(far, conn)
	}

	require.EqualValues(t, 2, counter.Exchanges())
}

// A link that is shorter than it says would make anything reach its goal. What is
// said at once must arrive at once, too, for a longer way is no slower wire.
func TestLinkTakesItsTimeForEachExchange(t *testing.T) {
	t.Parallel()
	const oneWay = 20 * time.Millisecond
	near := pgtest.New(t)
	link, err := wire.NewLink(t.Context(), near.Config(), oneWay)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, link.Close()) })
	pool := pgtest.Connect(t, near, func(config *pgxpool.Config) { one(config); link.Attach(config) })
	var text string
	large := func() time.Duration {
		began := time.Now()
		require.NoError(t, pool.QueryRow(t.Context(), `select repeat('x', 1000000)`).Scan(&text))
		return time.Since(began)
	}
	large() // connects and prepares

	took := large()

	require.Len(t, text, 1_000_000)
	require.GreaterOrEqual(t, took, 2*oneWay)
	require.Less(t, took, 10*oneWay)
}

// What a pool says is not lost when the server's end goes away: its connections
// fail, and the link ends.
func TestLinkEndsWithItsConnections(t *testing.T) {
	t.Parallel()
	near := pgtest.New(t)
	link, err := wire.NewLink(t.Context(), near.Config(), 0)
	require.NoError(t, err)
	pool := pgtest.Connect(t, near, func(config *pgxpool.Config) { one(config); link.Attach(config) })
	_, err = pool.Exec(t.Context(), `select 1`)
	require.NoError(t, err)

	require.NoError(t, link.Close())

	_, err = pool.Exec(t.Context(), `select 1`)
	require.Error(t, err)
}
