package work_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/work"
	"github.com/lease-governance/leasereaper/reaper"
)

// errOver is the cause with which the tests stop a worker.
var errOver = errors.New("the test is over")

// crew is a worker that a test has started.
type crew struct {
	ends chan work.End
	log  *logbook
	halt func()       // ends Run's context
	stop func() error // does that, and returns Run's error
}

// start starts a worker over the kinds of its handlers. It ends with the test.
func start(t *testing.T, pool *pgxpool.Pool, lease time.Duration, cfg work.Config) crew {
	t.Helper()
	q, err := queue.New(pool, queue.Config{Lease: lease, BackoffBaseSec: 1})
	require.NoError(t, err)
	c := crew{ends: make(chan work.End, 1000), log: &logbook{}}
	cfg.OnEnd = func(end work.End) { c.ends <- end }
	cfg.Poll = 5 * time.Millisecond
	cfg.Logger = slog.New(slog.NewTextHandler(c.log, nil))
	worker, err := work.New(q, cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	c.halt = func() { cancel(errOver) }
	c.stop = sync.OnceValue(func() error {
		c.halt()
		return <-ended
	})
	t.Cleanup(func() { _ = c.stop() })
	return c
}

// next is the next job's end.
func (c crew) next(t *testing.T) work.End {
	t.Helper()
	select {
	case end := <-c.ends:
		return end
	case <-time.After(fixture.Waiting):
		require.FailNow(t, "no job has ended")
		return work.End{}
	}
}

// one is the handlers of the one kind that the tests use.
func one(handler work.Handler) map[string]work.Handler {
	return map[string]work.Handler{"send": handler}
}

func enqueue(t *testing.T, pool *pgxpool.Pool, n, maxAttempts int) {
	t.Helper()
	for range n {
		_, err := queue.Enqueue(t.Context(), pool, queue.NewJob{Kind: "send", MaxAttempts: maxAttempts})
		require.NoError(t, err)
	}
}

// reap lets the leases end and reaps them, before they are renewed.
func reap(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	r, err := reaper.New(pool, reaper.Config{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		fixture.Exec(t, pool, `update job_queue set lease_until = now() - interval '1 second' where state = 'leased'`)
		result, err := r.Apply(t.Context(), "test-reaper", 100)
		return err == nil && len(result.Actions) > 0
	}, fixture.Waiting, fixture.Tick)
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

func (l *logbook) count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), message)
}
