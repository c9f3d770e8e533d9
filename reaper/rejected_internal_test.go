package reaper

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var rejectedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func failuresOf(ids ...string) []Failure {
	failures := make([]Failure, len(ids))
	for i, id := range ids {
		failures[i].JobID = id
	}
	return failures
}

// A job that is rejected each time would cost its transactions every half minute
// for ever.
func TestTheWaitOfARejectedJobDoublesUpToTenMinutes(t *testing.T) {
	t.Parallel()

	r, now := rejectedJobs{firstWait: time.Minute}, rejectedAt
	for _, minutes := range []int{1, 2, 4, 8, 10, 10} {
		wait := time.Duration(minutes) * time.Minute
		r.add(failuresOf("a"), rejectedAt, now)
		over := now.Add(wait)

		excluded, err := r.excluded(time.Time{}, over.Add(-wait/10-1))
		require.NoError(t, err)
		require.JSONEq(t, `{"a":"2026-01-02T03:04:05Z"}`, excluded)
		excluded, err = r.excluded(time.Time{}, over)
		require.NoError(t, err)
		require.Empty(t, excluded)
		now = over
	}
}

// An interval of an hour must not make the waits longer than ten minutes.
func TestTheFirstWaitIsBoundedToo(t *testing.T) {
	t.Parallel()

	r := rejectedJobs{firstWait: time.Hour}
	r.add(failuresOf("a"), rejectedAt, rejectedAt)

	excluded, err := r.excluded(time.Time{}, rejectedAt.Add(10*time.Minute))
	require.NoError(t, err)
	require.Empty(t, excluded)
}

// A job that was settled when it was tried again has no wait left over from before,
// should it be rejected months later.
func TestAJobThatWentThroughIsForgotten(t *testing.T) {
	t.Parallel()

	r := rejectedJobs{firstWait: time.Minute}
	require.Len(t, r.add(failuresOf("a", "b"), rejectedAt, rejectedAt), 2)
	over := rejectedAt.Add(time.Minute)
	require.Empty(t, r.add(failuresOf("a"), rejectedAt, over)) // it is known

	r.tried(over)

	require.Equal(t, failuresOf("b"), r.add(failuresOf("a", "b"), rejectedAt, over))
}

// A claim that begins behind a job does not meet it, and need not be told of it.
func TestAClaimIsToldOfThoseAlone(t *testing.T) {
	t.Parallel()

	r := rejectedJobs{firstWait: time.Minute}
	r.add(failuresOf("before"), rejectedAt, rejectedAt)
	r.add(failuresOf("behind"), rejectedAt.Add(1), rejectedAt)

	excluded, err := r.excluded(rejectedAt, rejectedAt)
	require.NoError(t, err)
	require.JSONEq(t, `{"behind":"2026-01-02T03:04:05.000000001Z"}`, excluded)
}

// A migration that breaks every job of a large queue must not fill the memory of
// the services.
func TestRejectedJobsAreRememberedUpToABound(t *testing.T) {
	t.Parallel()

	r := rejectedJobs{firstWait: time.Minute}
	for i := range 3 * mostRejected {
		r.add(failuresOf(fmt.Sprint(i)), rejectedAt, rejectedAt)
	}

	require.Len(t, r.jobs, mostRejected)
	r.tried(rejectedAt.Add(time.Minute))
	require.Empty(t, r.jobs)
}
