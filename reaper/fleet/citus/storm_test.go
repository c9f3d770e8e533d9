package citus_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
	"github.com/lease-governance/leasereaper/reaper/fleet/citus"
)

const (
	stormMoves = 12
	stormJobs  = 60 // that are put into each shard before a move
)

// confirmed counts, for each job, the reaps that applies have confirmed, and the passes that
// met a move.
type confirmed struct {
	mu    sync.Mutex
	jobs  map[string]int
	moves int
}

func (c *confirmed) pass(_ context.Context, pass reaper.Pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(pass.Err, citus.ErrMoved) || pgtx.Code(pass.Err) == pgtx.CodeLockNotAvailable {
		c.moves++
	}
	if pass.Result == nil {
		return
	}
	for _, action := range pass.Result.Actions {
		c.jobs[action.JobID]++
	}
}

// count returns how many jobs were reaped.
func (c *confirmed) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.jobs)
}

// Shards move while a fleet reaps. A confirmed reap that did not move with its shard leaves a
// stale job on the new node, which is reaped a second time.
func TestAStormOfMovesLosesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	shards := c.shards(t, citus.Config{Reaper: reaper.Config{LockTimeout: 50 * time.Millisecond}})
	f, err := fleet.New(fleet.Config{Members: shards.Members, Released: shards.Released})
	require.NoError(t, err)
	reaps := &confirmed{jobs: map[string]int{}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- f.Run(ctx, reapertest.Actor, reaper.RunConfig{
			Batch: 2, Interval: 20 * time.Millisecond, MinInterval: time.Millisecond, Settle: 1, OnPass: reaps.pass,
		})
	}()

	reaped := func(jobs int) {
		require.Eventually(t, func() bool { return reaps.count() >= jobs }, reapertest.Waiting, reapertest.Tick)
	}
	for n := range stormMoves {
		for shard := range 4 {
			c.stale(t, shard, stormJobs)
		}
		reaped(4*stormJobs*n + 1) // and the others while the shard moves
		c.move(t, n%4)
		reaped(4 * stormJobs * (n + 1))
	}
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)

	for job, n := range reaps.jobs {
		require.Equal(t, 1, n, job)
	}
	for n := range 4 {
		require.Equal(t, stormMoves*stormJobs, c.reaped(t, n))
		require.Equal(t, stormMoves*stormJobs/10, reapertest.One[int](t, c.on(t, n), `select count(*)::int from `+lettersOf(n)))
	}
	require.Positive(t, reaps.moves)
}
