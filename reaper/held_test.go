package reaper_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// heldLoop is a loop that stands still after each pass, until the next is asked for.
type heldLoop struct {
	passes chan reaper.Pass
	goOn   chan struct{}
	begun  bool
}

// hold starts a Run that is held. It ends with the test.
func hold(t *testing.T, r *reaper.Reaper, cfg reaper.RunConfig) *heldLoop {
	t.Helper()
	loop := &heldLoop{passes: make(chan reaper.Pass), goOn: make(chan struct{})}
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
	run(t, r, cfg)
	return loop
}

// pass lets the loop make one pass, which goes well.
func (loop *heldLoop) pass(t *testing.T) reaper.Pass {
	t.Helper()
	if loop.begun {
		loop.goOn <- struct{}{}
	}
	loop.begun = true
	pass := <-loop.passes
	require.NoError(t, pass.Err)
	return pass
}

// until lets the loop make one pass or more, until a condition holds.
func (loop *heldLoop) until(t *testing.T, condition func() bool) {
	t.Helper()
	began := time.Now()
	for loop.pass(t); !condition(); loop.pass(t) {
		require.Less(t, time.Since(began), waiting)
	}
}

// soon inserts jobs whose leases end one after the other for half a minute. They
// wake a loop up that would sleep until its next interval.
func soon(t *testing.T, db execer) {
	t.Helper()
	exec(t, db, `insert into job_queue (job_kind, state, lease_until)
		select 'soon', 'leased', now() + make_interval(secs => i / 20.0) from generate_series(1, 600) i`)
}
