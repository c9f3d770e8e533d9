package reaper_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// fill adds jobs of every fate: three to reset, two to move, and two with live leases.
func (l library) fill(t *testing.T, db reapertest.Execer) {
	t.Helper()
	l.add(t, db, "young", 3, l.young, 10)
	l.add(t, db, "spent", 2, l.spent, 2)
	l.add(t, db, "live", 2, l.young, -60)
}

// A queue of another library is reaped in one transaction, in whatever way that is made,
// and each job is what that library takes for a job to try again, or for a dead one.
func TestLibrariesAreReapedInEveryWay(t *testing.T) {
	t.Parallel()

	ways := map[string]struct{ hooked, nested, planned bool }{
		"in one exchange":                    {},
		"with a hook":                        {hooked: true},
		"in a transaction of the caller's":   {nested: true},
		"as planned":                         {planned: true},
		"as planned, by a hook, in the same": {hooked: true, nested: true, planned: true},
	}
	for name, library := range libraries {
		for way, how := range ways {
			for _, bad := range []int{0, 1} {
				t.Run(name+", "+way+map[int]string{1: ", though one is rejected"}[bad], func(t *testing.T) {
					t.Parallel()
					pool := library.open(t)
					library.fill(t, pool)
					library.add(t, pool, "bad", bad, library.young, 20)
					library.add(t, pool, "bad", bad, library.spent, 30)
					library.reject(t, pool)
					cfg := library.config()
					if how.hooked {
						cfg.OnApply = reapertest.NoHook
					}
					var db reaper.DB = pool
					if how.nested {
						tx := reapertest.Begin(t, pool)
						defer func() {
							require.NoError(t, tx.Commit(t.Context()))
							library.requireReaped(t, pool, bad)
						}()
						db = tx
					}
					r := reapertest.New(t, db, cfg)
					dryRun := review(t, r, 100)
					result := applyOrPlan(t, r, how.planned, dryRun)

					require.Equal(t, 5+2*bad, dryRun.StaleLeaseCount)
					library.requireResult(t, result, dryRun, bad)
					if !how.nested {
						library.requireReaped(t, pool, bad)
					}
				})
			}
		}
	}
}

// applyOrPlan applies what is stale, or a plan.
func applyOrPlan(t *testing.T, r *reaper.Reaper, planned bool, plan *reaper.DryRunResult) *reaper.ApplyResult {
	t.Helper()
	if !planned {
		return reapertest.Apply(t, r, 100)
	}
	result, err := r.ApplyPlan(t.Context(), reapertest.Actor, plan)
	require.NoError(t, err)
	require.Nil(t, result.Skipped)
	return result
}

// requireResult requires that an apply and a dry run agree.
func (l library) requireResult(t *testing.T, result *reaper.ApplyResult, dryRun *reaper.DryRunResult, bad int) {
	t.Helper()
	require.Equal(t, []int{3, 2, 2 * bad}, []int{result.ResetCount, result.DeadLetterCount, result.FailedCount}, result.Failures)
	require.Len(t, result.Failures, 2*bad)
	for _, failure := range result.Failures {
		require.Equal(t, "23514", failure.SQLState)
	}
	for i, action := range result.Actions {
		job := dryRun.Jobs[2*bad+i]
		require.Equal(t, []any{job.JobID, job.JobKind, job.LeaseUntil}, []any{action.JobID, action.JobKind, action.LeaseUntil})
		require.Equal(t, job.OverdueSeconds, int64(dryRun.EvaluatedAt.Sub(job.LeaseUntil)/time.Second), "of the lease's end")
		if action.Action == reaper.ActionMoved {
			require.Equal(t, l.moved, action.Attempts)
			require.Contains(t, string(action.DeadLetter.Document), `"job_id":"`+job.JobID+`"`)
			continue
		}
		require.Equal(t, l.reset, action.Attempts)
		wait := time.Duration(action.BackoffSec) * time.Second
		require.WithinDuration(t, time.Now().Add(wait), action.ScheduledAt, time.Minute)
	}
}

// requireReaped requires that the jobs are as the library wants them.
func (l library) requireReaped(t *testing.T, pool *pgxpool.Pool, bad int) {
	t.Helper()
	want := map[string]int{"young reset": 3, "spent dead": 2, "live leased": 2}
	if bad > 0 {
		want["bad leased"] = 2 * bad
	}
	require.Equal(t, want, l.seen(t, pool))
}

// Over a slow link a queue that is mapped costs as much as the reference's: a claim and a
// reap, with the commit in it.
func TestLibrariesAreReapedInTwoExchanges(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			traced, recorder := reapertest.Recording(t, pool)
			r := reapertest.New(t, traced, library.config())
			reapertest.Apply(t, r, 1) // it looks at the tables once
			library.fill(t, pool)

			before := recorder.Count()
			require.Len(t, reapertest.Apply(t, r, 10).Actions, 5)
			first := recorder.Count() - before
			library.fill(t, pool)
			before = recorder.Count()
			require.Len(t, reapertest.Apply(t, r, 10).Actions, 5)

			require.LessOrEqual(t, first, 4, "its statements are prepared")
			require.Equal(t, 2, recorder.Count()-before)
		})
	}
}
