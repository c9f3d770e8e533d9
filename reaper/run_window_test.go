package reaper_test

import (
	"context"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// The loop that serves for months reaps in the windows, and only in them.
func TestRunReapsInWindowsAlone(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	settings := gates.Table{}
	require.NoError(t, settings.CloseWindow(t.Context(), pool, "ops"))
	reapertest.Stale(t, pool, "kind", 2, 0, 5)
	passes := make(chan reaper.Pass, 1000)
	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{}), reapertest.Quick(func(_ context.Context, p reaper.Pass) { passes <- p }))
	refused := func(reason string) {
		require.Eventually(t, func() bool {
			pass := <-passes
			require.NoError(t, pass.Err)
			return pass.Result.Reason == reason
		}, reapertest.Waiting, reapertest.Tick)
	}

	for round := range 2 {
		refused("queue.lease.reaper_dry_run_only=true")
		_, err := settings.OpenWindow(t.Context(), pool, "ops", time.Hour)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == 2+round }, reapertest.Waiting, reapertest.Tick)
		require.NoError(t, settings.CloseWindow(t.Context(), pool, "ops"))
		reapertest.Stale(t, pool, "kind", 1, 0, 5)
	}
	refused("queue.lease.reaper_dry_run_only=true")

	until, err := settings.OpenWindow(t.Context(), pool, "ops", time.Microsecond) // nobody closes it
	require.NoError(t, err)
	refused("queue.lease.reaper_window_until=" + until.Format(time.RFC3339Nano))
	require.Equal(t, map[string]int{"retry_waiting": 3, "leased": 1}, reapertest.States(t, pool))
}

// The operator closes the window, sees that it is done, and drains the machines.
func TestCloseWindowIsAFence(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "dying", 1, 4, 5)
	_, err := gates.Table{}.OpenWindow(t.Context(), pool, "ops", time.Hour)
	require.NoError(t, err)
	events := make(chan string, 2)
	held := deadletter.MoverFunc(func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
		go func() {
			if err := (gates.Table{}).CloseWindow(ctx, pool, "ops"); err != nil {
				events <- err.Error()
			}
			events <- "closed"
		}()
		reapertest.WaitForLock(t, pool, "-- gates.lock%")
		events <- "apply goes on"
		return deadletter.Table{}.Move(ctx, tx, batch)
	})

	require.Equal(t, 1, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{DeadLetter: held}), 10).DeadLetterCount)

	require.Equal(t, "apply goes on", <-events)
	require.Equal(t, "closed", <-events)
	reapertest.Stale(t, pool, "later", 1, 0, 5)
	require.Equal(t, "queue.lease.reaper_dry_run_only=true", refuse(t, reapertest.New(t, pool, reaper.Config{})))
}

// Looking is always allowed, and a window that has passed is nothing to mend; one
// that cannot be read is.
func TestLookingAsksForNoWindow(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 3, 0, 5)

	for until, problems := range map[string]int{"-infinity": 0, "soon": 1} {
		setWindow(t, pool, "'"+until+"'")
		result, err := reapertest.New(t, pool, reaper.Config{}).DryRun(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, 3, result.StaleLeaseCount)
		for _, source := range []gates.Source{gates.Table{}, gates.SourceFunc(gates.Table{}.ReadUnlocked)} {
			found := reapertest.Verify(t, pool, reaper.Config{Gates: source}).Problems
			require.Len(t, found, problems)
			for _, problem := range found {
				require.Equal(t, reaper.CodeSettingInvalid, problem.Code)
				require.Equal(t, gates.WindowUntil, problem.Object)
			}
		}
	}
}

// A flood is asked for after the window, as after each gate.
func TestAWindowComesBeforeMaxStale(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 3, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{MaxStale: 1})
	setWindow(t, pool, `'-infinity'`)
	require.Equal(t, "queue.lease.reaper_window_until=-infinity", refuse(t, r))
	setWindow(t, pool, `'infinity'`)
	require.Equal(t, reaper.ReasonMaxStaleExceeded, refuse(t, r))
}
