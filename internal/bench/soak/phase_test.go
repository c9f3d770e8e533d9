package soak_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/soak"
)

// queue has a sample each minute, whose number is its figures.
func queue(held ...bool) soak.Queue {
	var q soak.Queue
	for i, h := range held {
		n := i + 1
		q.Samples = append(q.Samples, soak.Sample{
			Seconds: 60 * float64(n), Held: h, DeadRows: int64(n), Done: 60 * n,
			Overdue: soak.Times{Count: n % 2, Median: float64(n), P99: 10 * float64(n)},
		})
	}
	return q
}

// What the old transaction does is read off the difference of the thirds. A sample in the
// wrong one hides it.
func TestPhasesAreThirds(t *testing.T) {
	t.Parallel()
	q := queue(false, false, true, true, false, false)

	phases := q.Phases()

	require.Len(t, phases, 3)
	open := phases[1]
	require.Equal(t, "open", open.Name)
	require.Equal(t, q.Samples[2:4], open.Samples)
	require.Equal(t, int64(4), open.Last().DeadRows)
	require.Equal(t, int64(4), open.Most(func(s soak.Sample) int64 { return s.DeadRows }))
	require.Equal(t, int64(7), open.Sum(func(s soak.Sample) int64 { return s.DeadRows }))
	require.InDelta(t, 3.5, open.PerSecond(func(s soak.Sample) int64 { return int64(s.Done) }), 1e-9)
	from, to := q.Held()
	require.InDelta(t, 120, from, 1e-9)
	require.InDelta(t, 240, to, 1e-9)
}

// A minute in which nothing was reaped has no time. Taken as zero, it would make the reaper
// look faster than it is.
func TestMinutesWithoutATimeDoNotCount(t *testing.T) {
	t.Parallel()
	overdue := func(s soak.Sample) soak.Times { return s.Overdue }

	all := queue(false, false, false, false, false, false, true, true, true).Phases()

	require.Equal(t, soak.Times{Count: 2, Median: 2, P99: 30}, all[0].Times(overdue))
	require.Equal(t, soak.Times{Count: 1, Median: 5, P99: 50}, all[1].Times(overdue))
	require.Zero(t, soak.Phase{}.Times(overdue))
}
