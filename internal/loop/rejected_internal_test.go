package loop

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var rejectedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// add adds jobs, and returns those that are new.
func (r *Rejected) add(seenAt, now time.Time, ids ...string) (fresh []string) {
	for _, id := range ids {
		if r.Add(id, seenAt, now) {
			fresh = append(fresh, id)
		}
	}
	return fresh
}

// Without waits a job that is always rejected would cost transactions every half minute.
func TestTheWaitOfARejectedJobDoublesUpToTenMinutes(t *testing.T) {
	t.Parallel()

	r, now := NewRejected(time.Minute), rejectedAt
	for _, minutes := range []int{1, 2, 4, 8, 10, 10} {
		wait := time.Duration(minutes) * time.Minute
		r.add(rejectedAt, now, "a")
		over := now.Add(wait)

		excluded, err := r.Excluded(time.Time{}, over.Add(-wait/10-1))
		require.NoError(t, err)
		require.JSONEq(t, `{"a":"2026-01-02T03:04:05Z"}`, excluded)
		excluded, err = r.Excluded(time.Time{}, over)
		require.NoError(t, err)
		require.Empty(t, excluded)
		now = over
	}
}

// An interval of an hour must not make the waits longer than ten minutes.
func TestTheFirstWaitIsBoundedToo(t *testing.T) {
	t.Parallel()

	r := NewRejected(time.Hour)
	r.add(rejectedAt, rejectedAt, "a")

	excluded, err := r.Excluded(time.Time{}, rejectedAt.Add(10*time.Minute))
	require.NoError(t, err)
	require.Empty(t, excluded)
}

// A job that was reaped at a retry must begin with the first wait if it is rejected again
// months later.
func TestAJobThatWentThroughIsForgotten(t *testing.T) {
	t.Parallel()

	r := NewRejected(time.Minute)
	require.Len(t, r.add(rejectedAt, rejectedAt, "a", "b"), 2)
	over := rejectedAt.Add(time.Minute)
	require.Empty(t, r.add(rejectedAt, over, "a")) // it is known

	r.Tried(over)

	require.Equal(t, []string{"b"}, r.add(rejectedAt, over, "a", "b"))
}

// A claim that begins after a job does not find it, so the job need not be excluded.
func TestAClaimIsToldOfThoseAlone(t *testing.T) {
	t.Parallel()

	r := NewRejected(time.Minute)
	r.add(rejectedAt, rejectedAt, "before")
	r.add(rejectedAt.Add(1), rejectedAt, "behind")

	excluded, err := r.Excluded(rejectedAt, rejectedAt)
	require.NoError(t, err)
	require.JSONEq(t, `{"behind":"2026-01-02T03:04:05.000000001Z"}`, excluded)
}

// A migration that breaks every job of a large queue must not fill the memory of
// the services.
func TestRejectedJobsAreRememberedUpToABound(t *testing.T) {
	t.Parallel()

	r := NewRejected(time.Minute)
	for i := range 3 * mostRejected {
		r.add(rejectedAt, rejectedAt, fmt.Sprint(i))
	}

	require.Len(t, r.jobs, mostRejected)
	r.Tried(rejectedAt.Add(time.Minute))
	require.Empty(t, r.jobs)
}
