package deadletter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// A hook or an operator who reads a receipt finds the row by it: the letter is the job.
func TestInPlaceAcceptsEachJobAsItsOwnLetter(t *testing.T) {
	t.Parallel()
	receipts, err := deadletter.InPlace{}.Move(t.Context(), nil, deadletter.Batch{
		Actor: "a", FinalError: "e", Jobs: []deadletter.Job{{ID: "7", Attempts: 3}, {ID: `x"y`, Attempts: 4}},
	})

	require.NoError(t, err)
	require.Len(t, receipts, 2)
	for i, want := range []string{
		`{"dead_letter_id":"7","job_id":"7","state":"dead_letter","refused":false,"attempts":3,"final_error":"e"}`,
		`{"dead_letter_id":"x\"y","job_id":"x\"y","state":"dead_letter","refused":false,"attempts":4,"final_error":"e"}`,
	} {
		require.False(t, receipts[i].Refused)
		require.JSONEq(t, want, string(receipts[i].Document))
	}
}

// Without a time of the move letters have no age, and nothing may be removed for one. A
// column that no queue can have is the caller's slip.
func TestAgesInPlaceNeedATime(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	store := deadletter.Store{InPlace: true}

	for _, filter := range []deadletter.Filter{{OlderThan: 1000}, {YoungerThan: 1000}} {
		_, err := deadletter.List(t.Context(), pool, store, filter, 1)
		require.ErrorIs(t, err, deadletter.ErrFilter)
		_, err = deadletter.Redrive(t.Context(), pool, store, "a", filter, 1)
		require.ErrorIs(t, err, deadletter.ErrFilter)
		_, err = deadletter.Purge(t.Context(), pool, store, 0, deadletter.PurgeConfig{Filter: filter})
		require.ErrorIs(t, err, deadletter.ErrFilter)
	}
	_, err := deadletter.Purge(t.Context(), pool, store, 1, deadletter.PurgeConfig{Unredriven: true})
	require.ErrorIs(t, err, deadletter.ErrFilter)
	store.MovedAt = "a\x00"
	_, err = deadletter.List(t.Context(), pool, store, deadletter.Filter{}, 1)
	require.ErrorIs(t, err, deadletter.ErrQueue)
}
