package reaper_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// Jobs that one worker claimed together have one start. None of them may be passed by at
// the edge of a batch, or reaped twice.
func TestLibrariesAreDrainedThroughTies(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			tx := reapertest.Begin(t, pool) // now() stands still
			for range 10 {
				library.add(t, tx, "young", 1, library.young, 5)
				library.add(t, tx, "spent", 1, library.spent, 5)
			}
			library.add(t, tx, "young", 4, library.young, 5)
			library.add(t, tx, "live", 1, library.young, -60)
			library.add(t, tx, "bad", 3, library.young, 5)
			require.NoError(t, tx.Commit(t.Context()))
			library.reject(t, pool)

			result, err := reapertest.New(t, pool, library.config()).Drain(t.Context(), reapertest.Actor, 3)

			require.NoError(t, err)
			require.Equal(t, &reaper.DrainResult{Batches: 9, ResetCount: 14, DeadLetterCount: 10, FailedCount: 3}, result)
			require.Equal(t, map[string]int{"young reset": 14, "spent dead": 10, "live leased": 1, "bad leased": 3},
				library.seen(t, pool))
		})
	}
}

// everyKind are the kinds of the libraries' jobs.
func everyKind(grace time.Duration) map[string]time.Duration {
	return map[string]time.Duration{"river": grace, "7": grace, "a": grace, "b": grace, "oban": grace, "": grace, "Mail": grace}
}

// A loop that looks once an hour must know when the next lease ends, from its start and its
// length, and be there then: not sooner, and not an hour later.
func TestALoopForeseesTheEndsOfLeasesThatHaveStarts(t *testing.T) {
	t.Parallel()
	const grace = 200 * time.Millisecond
	tests := map[string]struct {
		cfg   reaper.Config
		grace time.Duration
	}{
		"of all kinds alike":                  {},
		"with a grace":                        {reaper.Config{Grace: grace}, grace},
		"where each kind has a grace":         {reaper.Config{KindGrace: everyKind(grace)}, grace},
		"where each kind has less than usual": {reaper.Config{Grace: time.Hour, KindGrace: everyKind(0)}, 0},
	}
	for name, library := range libraries {
		for at, test := range tests {
			t.Run(name+", "+at, func(t *testing.T) {
				t.Parallel()
				pool := library.open(t)
				cfg := library.config()
				cfg.Grace, cfg.KindGrace = test.cfg.Grace, test.cfg.KindGrace
				library.add(t, pool, "young", 1, library.young, -0.4)
				library.add(t, pool, "live", 1, library.young, -3600)
				passes := make(chan reaper.Pass, 1000)
				reapertest.Run(t, reapertest.New(t, pool, cfg), reaper.RunConfig{
					Interval: time.Hour, MinInterval: time.Millisecond, Settle: 1,
					OnPass: func(_ context.Context, p reaper.Pass) { passes <- p },
				})

				pass := <-passes
				for ; len(pass.Result.Actions) == 0; pass = <-passes {
					require.NoError(t, pass.Err)
				}
				require.Len(t, pass.Result.Actions, 1)
				require.GreaterOrEqual(t, pass.Result.Actions[0].Overdue, test.grace)
				require.Less(t, pass.Result.Actions[0].Overdue, reapertest.Waiting)
				require.Equal(t, map[string]int{"young reset": 1, "live leased": 1}, library.seen(t, pool))
			})
		}
	}
}

// A job that is rejected waits, and does not wait when it has got another lease since.
// Both are told from the lease's start.
func TestALoopLeavesRejectedJobsOfLibrariesUntilTheirNextLease(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			library.reject(t, pool)
			library.add(t, pool, "bad", 1, library.young, 3600)
			const jobs = 20
			for i := range jobs {
				library.add(t, pool, "young", 1, library.young, -float64(i+1)/10)
			}
			passes := make(chan reaper.Pass, 1000)
			reapertest.Run(t, reapertest.New(t, pool, library.config()), reaper.RunConfig{
				Interval: time.Hour, MinInterval: time.Millisecond, Settle: 1,
				OnPass: func(_ context.Context, p reaper.Pass) { passes <- p },
			})

			failed := 0
			for reaped := 0; reaped < jobs || failed < 2; {
				pass := <-passes
				require.NoError(t, pass.Err)
				if failed == 0 && pass.Result.FailedCount == 1 {
					column := pgx.Identifier{library.cfg.Queue.Columns.LeaseUntil}.Sanitize()
					reapertest.Exec(t, pool, `update jobs set `+column+` = `+column+` + interval '1 hour 0.5 s' where label = 'bad'`)
				}
				failed += pass.Result.FailedCount
				reaped += pass.Result.ResetCount
			}
			require.Equal(t, 2, failed)
		})
	}
}

// A flood is counted by the ends of the leases, and a dry run stops counting.
func TestLibrariesAreCounted(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			library.fill(t, pool)
			cfg := library.config()
			cfg.MaxStale, cfg.CountUpTo = 4, 3
			r := reapertest.New(t, pool, cfg)

			dryRun, err := r.DryRun(t.Context(), 2)
			require.NoError(t, err)
			refused, err := r.Apply(t.Context(), reapertest.Actor, 10)
			require.NoError(t, err)
			cfg.MaxStale, cfg.CountUpTo = 5, 5
			r = reapertest.New(t, pool, cfg)
			all, err := r.DryRun(t.Context(), 2)
			require.NoError(t, err)

			require.Equal(t, []any{3, true, 2}, []any{dryRun.StaleLeaseCount, dryRun.StaleLeaseCountCapped, len(dryRun.Jobs)})
			require.Equal(t, []any{5, false, 2}, []any{all.StaleLeaseCount, all.StaleLeaseCountCapped, all.MoveCount})
			require.Equal(t, reaper.ReasonMaxStaleExceeded, refused.Reason)
			require.Len(t, reapertest.Apply(t, r, 10).Actions, 5)
			library.requireReaped(t, pool, 0)
		})
	}
}

// Grace is counted from the end of a lease, not from its start.
func TestGraceIsOfTheEndOfALease(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			tx := reapertest.Begin(t, pool) // now() stands still
			library.add(t, tx, "young", 10, library.young, 1)
			cfg := library.config()
			cfg.Grace = 5500 * time.Millisecond
			r := reapertest.New(t, tx, cfg)

			dryRun, err := r.DryRun(t.Context(), 100)

			require.NoError(t, err)
			require.Equal(t, 5, dryRun.StaleLeaseCount)
			require.Equal(t, int64(10), dryRun.Jobs[0].OverdueSeconds)
			require.Equal(t, dryRun.EvaluatedAt.Add(-10*time.Second), dryRun.Jobs[0].LeaseUntil)
			require.Equal(t, 5, reapertest.Apply(t, r, 100).ResetCount)
			require.Equal(t, map[string]int{"young reset": 5, "young leased": 5}, library.seen(t, tx))
		})
	}
}
