package reaper_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// fixed waits for as many seconds.
func fixed(seconds int64) backoff.Policy {
	return backoff.PolicyFunc(func(int, int64) int64 { return seconds })
}

// A kind that calls a partner's service waits longer than others, in whatever way it is
// reaped, and no other kind waits for it.
func TestAKindHasABackoffOfItsOwn(t *testing.T) {
	t.Parallel()
	kinds := map[string]backoff.Policy{"slow": fixed(7777), "": fixed(1), "it's": fixed(3), "gone": fixed(9)}
	wait := map[string]int64{"slow": 7777, "Slow": 10, "slower": 10, "": 1, "it's": 3, "other": 10}
	movers := map[string]deadletter.Mover{
		"a table": deadletter.Table{}, "a function": deadletter.Function{}, "in place": deadletter.InPlace{},
		"a mover in Go": deadletter.MoverFunc(deadletter.InPlace{}.Move),
	}
	for name, mover := range movers {
		for _, planned := range []bool{false, true} {
			for _, bad := range []int{0, 1} {
				t.Run(name+map[bool]string{true: ", as planned"}[planned]+map[int]string{1: ", one rejected"}[bad], func(t *testing.T) {
					t.Parallel()
					pool := reapertest.WithOracle(t, reapertest.OpenQueue(t))
					reapertest.Exec(t, pool, `create extension citext; alter table job_queue alter job_kind type citext, alter job_kind drop not null,
						add constraint bad check (job_kind <> 'bad' or state = 'leased')`)
					for kind := range wait {
						reapertest.Stale(t, pool, kind, 1, 0, 5)
					}
					reapertest.Exec(t, pool, `insert into job_queue (state, lease_until) values ('leased', now() - interval '1 s')`)
					reapertest.Stale(t, pool, "slow", 1, 4, 5)
					reapertest.Stale(t, pool, "bad", bad, 0, 5)
					given := map[string]backoff.Policy{}
					for kind, policy := range kinds {
						given[kind] = policy
					}
					r := reapertest.New(t, pool, reaper.Config{DeadLetter: mover, KindBackoff: given, ExceptKinds: []string{"gone"}})
					clear(given) // it is the caller's own

					result := applyOrPlan(t, r, planned, review(t, r, 100))

					require.Equal(t, []int{len(wait) + 1, 1, bad}, []int{result.ResetCount, result.DeadLetterCount, result.FailedCount})
					for _, action := range result.Actions {
						if action.Action == reaper.ActionReset {
							require.Equal(t, wait[action.JobKind], action.BackoffSec, action.JobKind)
						}
					}
				})
			}
		}
	}
}
