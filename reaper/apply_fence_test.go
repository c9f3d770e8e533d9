package reaper_test

import (
	"context"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// An operator closes a gate, sees the commit, and drains the machines; an apply
// that commits after that works on a queue that was meant to stand still.
func TestAClosedGateIsAFence(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ closing string }{
		"the substrate is switched off": {`update queue_config set value = 'false' where key = 'queue.job_substrate.enabled'`},
		"the reaper is switched off":    {`update queue_config set value = 'off' where key = 'queue.lease.reaper_enabled'`},
		"a setting is deleted":          {`delete from queue_config where key = 'queue.lease.reaper_dry_run_only'`},
		"all settings are truncated":    {`truncate queue_config`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "dying", 1, 4, 5)
			events := make(chan string, 2)
			held := deadletter.MoverFunc(func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
				go func() {
					if _, err := pool.Exec(ctx, test.closing); err != nil {
						events <- err.Error()
					}
					events <- "closed"
				}()
				reapertest.WaitForLock(t, pool, test.closing)
				events <- "apply goes on"
				return deadletter.Table{}.Move(ctx, tx, batch)
			})

			result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{DeadLetter: held}), 10)

			require.Equal(t, 1, result.DeadLetterCount)
			require.Equal(t, "apply goes on", <-events)
			require.Equal(t, "closed", <-events)
			reapertest.Stale(t, pool, "later", 1, 0, 5)
			refused, err := reapertest.New(t, pool, reaper.Config{}).Apply(t.Context(), reapertest.Actor, 10)
			require.NoError(t, err)
			require.True(t, refused.Refused)
		})
	}
}

// The other way round: the closing came first and is not committed yet. The
// apply must wait for it and then refuse, not go by the old value.
func TestApplyWaitsForAGateThatIsClosing(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	closing := reapertest.Begin(t, pool)
	reapertest.Exec(t, closing, `update queue_config set value = 'false' where key = 'queue.lease.reaper_enabled'`)

	r := reapertest.New(t, pool, reaper.Config{})
	done := make(chan *reaper.ApplyResult, 1)
	go func() {
		result, err := r.Apply(t.Context(), reapertest.Actor, 10)
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	reapertest.WaitForLock(t, pool, "-- gates.read%")
	require.NoError(t, closing.Commit(t.Context()))

	require.Equal(t, "queue.lease.reaper_enabled=false", (<-done).Reason)
	require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))
}

// A refusal must not keep the operators' rows locked, nor in a caller's
// transaction that goes on.
func TestARefusalLeavesNoLock(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `insert into queue_config (key, value) values ('queue.job_substrate.enabled', 'true')`)
	tx := reapertest.Begin(t, pool)

	result, err := reapertest.New(t, tx, reaper.Config{}).Apply(t.Context(), reapertest.Actor, 10)

	require.NoError(t, err)
	require.Equal(t, "queue.lease.reaper_enabled=false", result.Reason)
	reapertest.Exec(t, pool, `select from queue_config for update nowait`)
	reapertest.Exec(t, tx, `select 1`) // and the caller goes on
}
