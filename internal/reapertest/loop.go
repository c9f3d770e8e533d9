package reapertest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// ErrEnd is the cause of the end of a test's Run.
var ErrEnd = errors.New("the test is over")

// Quick returns a loop's configuration with short waits.
func Quick(onPass func(context.Context, reaper.Pass)) reaper.RunConfig {
	return reaper.RunConfig{Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: 1, OnPass: onPass}
}

// Run starts a Run. It ends with the test or when stop is called, and must return ErrEnd.
func Run(t testing.TB, r *reaper.Reaper, cfg reaper.RunConfig) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, Actor, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel(ErrEnd)
		require.ErrorIs(t, <-ended, ErrEnd)
	})
	t.Cleanup(stop)
	return stop
}

// Logbook is a log that a test reads while it is written.
type Logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Count returns how often the log has a text.
func (l *Logbook) Count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), message)
}

// Logger returns a logger that writes to the log.
func (l *Logbook) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Renewing is the message of a loop that waits after an outage.
const Renewing = "waiting for workers to renew leases"

// HeldLoop is a loop that stops after each pass until the test calls for the next.
type HeldLoop struct {
	passes chan reaper.Pass
	goOn   chan struct{}
	begun  bool
}

// Pass lets the loop make one pass, which must not fail.
func (loop *HeldLoop) Pass(t *testing.T) reaper.Pass {
	t.Helper()
	if loop.begun {
		loop.goOn <- struct{}{}
	}
	loop.begun = true
	pass := <-loop.passes
	require.NoError(t, pass.Err)
	return pass
}

// Until lets the loop make passes, at least one, until a condition holds.
func (loop *HeldLoop) Until(t *testing.T, condition func() bool) {
	t.Helper()
	began := time.Now()
	for loop.Pass(t); !condition(); loop.Pass(t) {
		require.Less(t, time.Since(began), Waiting)
	}
}

// Hold starts a Run as a HeldLoop. It ends with the test.
func Hold(t *testing.T, r *reaper.Reaper, cfg reaper.RunConfig) *HeldLoop {
	t.Helper()
	loop := &HeldLoop{passes: make(chan reaper.Pass), goOn: make(chan struct{})}
	cfg.OnPass = func(ctx context.Context, p reaper.Pass) {
		select {
		case loop.passes <- p:
		case <-ctx.Done():
			return
		}
		select {
		case <-loop.goOn:
		case <-ctx.Done():
		}
	}
	Run(t, r, cfg)
	return loop
}

// Soon inserts jobs whose leases expire one after the other for half a minute. They wake a
// loop before the end of its interval.
func Soon(t *testing.T, db Execer) {
	t.Helper()
	Exec(t, db, `insert into job_queue (job_kind, state, lease_until)
		select 'soon', 'leased', now() + make_interval(secs => i / 20.0) from generate_series(1, 600) i`)
}
