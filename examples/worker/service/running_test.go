package service_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/jobs"
	"github.com/lease-governance/leasereaper/examples/worker/service"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// running is a service that a test has started.
type running struct {
	addr string
	log  *logbook
	halt func()       // ends Run's context
	stop func() error // does that, and returns Run's error
	done chan struct{}
}

// quick is a service that tests need not wait for.
func quick(cfg service.Config) service.Config {
	cfg.Poll = 5 * time.Millisecond
	cfg.BackoffBaseSec = 1
	cfg.Loop = reaper.RunConfig{Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: 1}
	if cfg.Handlers == nil {
		cfg.Handlers = jobs.Handlers()
	}
	return cfg
}

// start runs a service until the test ends.
func start(t *testing.T, pool *pgxpool.Pool, cfg service.Config) *running {
	t.Helper()
	r := &running{log: &logbook{}, done: make(chan struct{})}
	cfg.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	s, err := service.New(pool, cfg)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.addr = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		err = s.Run(ctx, listener)
		close(r.done)
	}()
	r.halt = cancel
	r.stop = func() error {
		cancel()
		<-r.done
		return err
	}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

// get reads a page.
func (r *running) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	return fixture.Get(t, "http://"+r.addr+path)
}

// logbook is a log that a test reads while it is written.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) has(message string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), message)
}

func reachable(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return fixture.Queue(t)
}

// unreachable is a pool on a database that is not there.
func unreachable(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.Connect(t, fixture.Queue(t), func(c *pgxpool.Config) { c.ConnConfig.Database = "not_there" })
}
