package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// sourceOf is an open source of gates that may fail.
func sourceOf(fail func() error) gates.SourceFunc {
	return func(ctx context.Context, tx pgx.Tx, keys []string) (gates.Values, error) {
		if err := fail(); err != nil {
			return nil, err
		}
		return reapertest.OpenGate.Read(ctx, tx, keys)
	}
}

// passesOf runs a quick loop with one job a batch, and returns its passes.
func passesOf(t *testing.T, r *reaper.Reaper) <-chan reaper.Pass {
	t.Helper()
	passes := make(chan reaper.Pass, 10000)
	cfg := reapertest.Quick(func(_ context.Context, p reaper.Pass) { passes <- p })
	cfg.Batch = 1
	reapertest.Run(t, r, cfg)
	return passes
}

// Bad rows that are met in several batches of one drain are one piece of news.
func TestBadRowsOfSeveralBatchesAreLoggedOnce(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
	reapertest.Stale(t, pool, "check", 3, 0, 5)
	log := &reapertest.Logbook{}
	passes := passesOf(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger()}))

	for failed := 0; failed < 12; { // four drains of three
		failed += (<-passes).Result.FailedCount
	}
	require.Equal(t, 1, log.Count("jobs rejected"))
	require.Equal(t, 1, log.Count("failed_count=3"))
}

// A first batch that goes through does not end the trouble of the second.
func TestAnErrorBehindABatchThatWentThroughIsLoggedOnce(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
	reapertest.Stale(t, pool, "check", 2, 0, 5)
	log := &reapertest.Logbook{}
	calls := 0
	passes := passesOf(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger(), Gates: sourceOf(func() error {
		calls++
		if calls%4 == 3 || calls%4 == 0 { // an apply with a bad row asks twice
			return fmt.Errorf("request %d failed", calls)
		}
		return nil
	})}))

	for errs := 0; errs < 4; {
		if (<-passes).Err != nil {
			errs++
		}
	}
	require.Equal(t, 1, log.Count("pass failed"))
	require.Zero(t, log.Count("reaper recovered"))
}

// A flag service that is away says nothing about the database: nothing has to be
// reaped, and no operator has to look after the server.
func TestASourceThatIsAwayIsNoOutage(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	log := &reapertest.Logbook{}
	calls := 0
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger(), Gates: sourceOf(func() error {
		calls++
		if calls < 4 {
			return &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}
		}
		return nil
	})}), reaper.RunConfig{Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: time.Nanosecond})

	require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == 1 }, reapertest.Waiting, reapertest.Tick)
	require.Equal(t, 1, log.Count("pass failed"))
	require.Zero(t, log.Count("database unreachable"))
	require.Zero(t, log.Count("waiting for workers to renew leases"))
}
