package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A bar would be higher or lower than the work it stands for: counted twice by
// two looks, or forgotten with the rows.
func TestHistoryKeepsTheMostThatALookHasCounted(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 3, 1, 12, 0, 50, 0, time.UTC)
	start := now.Truncate(10 * time.Second)
	h := newHistory(sightOf(now, slice{start, 5, 1}, slice{start.Add(-time.Minute), 7, 0}))
	h.add(sightOf(now, slice{start, 5, 1}))
	require.Equal(t, []int{0, 7, 6}, h.minutes(now, 3))
	h.add(sightOf(now.Add(time.Second), slice{start, 2, 3}))
	require.Equal(t, []int{0, 7, 8}, h.minutes(now, 3))
	h.add(sightOf(now.Add(time.Minute)))
	require.Equal(t, []int{7, 8, 0}, h.minutes(now.Add(time.Minute), 3))
	h.add(sightOf(now.Add(2 * time.Hour)))
	require.Empty(t, h.slices)
}

// A screen that runs for a week would list a job twice, or grow without end.
func TestHistoryKeepsTheNewestJobsOnce(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := newHistory(sightOf(now))
	for i := range 3 * keptReaped {
		job := reapedJob{At: now.Add(time.Duration(i) * time.Second), What: "reset", JobID: "a", Attempts: int64(i)}
		h.addLast([]reapedJob{job})
		job.At = job.At.Add(-time.Minute) // the base was changed, and with it the estimate
		h.addLast([]reapedJob{job})
	}
	require.Len(t, h.last, keptReaped)
	require.Equal(t, int64(3*keptReaped-1), h.last[0].Attempts)
}

// After an hour without a database the figures of that hour would be missing.
func TestALookGoesBackToTheLastOne(t *testing.T) {
	t.Parallel()

	require.Equal(t, time.Hour, since(nil, 0))
	require.Equal(t, 2*time.Minute+time.Second, since(&sight{}, time.Second))
	require.Equal(t, time.Hour, since(&sight{}, 3*time.Hour))
}

// One job among thousands would not show, or an empty hour would be a panic.
func TestSparkline(t *testing.T) {
	t.Parallel()

	require.Equal(t, "···", sparkline([]int{0, 0, 0}))
	require.Equal(t, "·▁▄█", sparkline([]int{0, 1, 500, 1000}))
	require.Equal(t, "█", sparkline([]int{1}))
}

func sightOf(now time.Time, reaped ...slice) *sight {
	return &sight{Gates: &gateState{EvaluatedAt: now}, Reaped: reaped}
}
