package fleet_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// idleConns is how many connections the members of an idle fleet share.
const idleConns = 4

// idleFleet is a fleet whose members have nothing to do. They share one queue, which is as
// much work as one each.
type idleFleet struct {
	*fleet.Fleet
	interval time.Duration
	members  int
	passes   atomic.Int64
	trips    *reapertest.RoundTrips
}

func newIdleFleet(t testing.TB, members int, interval time.Duration) *idleFleet {
	t.Helper()
	pool, trips := reapertest.CountRoundTrips(t, reapertest.OpenQueue(t), func(c *pgxpool.Config) { c.MaxConns = idleConns })
	var list []fleet.Member
	for i := range members {
		list = append(list, fleet.Member{Name: fmt.Sprint(i), DB: pool})
	}
	f := newFleet(t, fleet.Config{Members: listOf(list...)})
	return &idleFleet{Fleet: f, interval: interval, members: members, trips: trips}
}

// start starts the loops, and returns when each has made its first passes.
func (f *idleFleet) start(t testing.TB) {
	t.Helper()
	run(t, f.Fleet, reaper.RunConfig{Interval: f.interval, Settle: 1, OnPass: func(context.Context, reaper.Pass) {
		f.passes.Add(1)
	}})
	f.wait(t, 2)
}

// wait returns when the members have made n more passes each, and how many those were.
func (f *idleFleet) wait(t testing.TB, n int) int {
	t.Helper()
	before := f.passes.Load()
	require.Eventually(t, func() bool {
		return f.passes.Load() >= before+int64(n*f.members)
	}, reapertest.Waiting, reapertest.Tick)
	return int(f.passes.Load() - before)
}

// What an idle member costs must not grow with the number of the others.
func TestAnIdleMemberIsOneRoundTripAnInterval(t *testing.T) {
	t.Parallel()
	const members = 200
	f := newIdleFleet(t, members, 300*time.Millisecond)
	f.start(t)
	var passes int
	began := time.Now()
	trips := f.trips.Of(func() { passes = f.wait(t, 3) })
	intervals := float64(time.Since(began)) / float64(f.interval)
	require.InDelta(t, passes, trips, 2*idleConns)
	require.LessOrEqual(t, float64(passes)/members, intervals*10/9+1)
}

// What a member costs that has nothing to do: round trips an interval, and memory without
// that of its pool. Both figures should be the same for any number of members.
func BenchmarkFleetIdle(b *testing.B) {
	for _, members := range []int{20, 200} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			f := newIdleFleet(b, members, time.Second)
			before := inUse()
			f.start(b)
			used := inUse() - before
			intervals := 0.0
			trips := f.trips.Of(func() {
				for b.Loop() {
					began := time.Now()
					f.wait(b, 1)
					intervals += float64(time.Since(began)) / float64(f.interval)
				}
			})
			b.ReportMetric(float64(trips)/intervals/float64(members), "trips/member/interval")
			b.ReportMetric(float64(used)/float64(members), "bytes/member")
		})
	}
}

// inUse is the memory of the heap and the stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse) //nolint:gosec // it is far from the edge
}
