package deadletter_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
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

// A key over more columns lets two jobs have one id. A purge of the old one must not take
// the other, which nobody asked for.
func TestAPurgeInPlaceLeavesJobsThatShareAnID(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	reapertest.Exec(t, pool, `create table jobs (id int, part text, state text, attempts int, max int, run_at timestamptz,
		until timestamptz, owner text, dead_at timestamptz, primary key (part, id));
		insert into jobs values (1, 'a', 'dead', 5, 5, now(), null, null, now() - interval '1 year'),
			(1, 'b', 'dead', 5, 5, now(), null, null, now()), (2, 'a', 'dead', 5, 5, now(), null, null, now() - interval '1 year')`)
	store := deadletter.Store{InPlace: true, MovedAt: "dead_at", Queue: reaper.Table{
		Name: pgx.Identifier{"jobs"},
		Columns: reaper.Columns{JobID: "id", JobKind: reaper.None, MaxAttempts: "max", ScheduledAt: "run_at", LeaseUntil: "until",
			LeaseOwner: "owner", LastError: reaper.None},
		States: reaper.States{DeadLetter: "dead"},
	}.DeadLetterQueue()}

	result, err := deadletter.Purge(t.Context(), pool, store, time.Hour, deadletter.PurgeConfig{Unredriven: true})

	require.NoError(t, err)
	require.Equal(t, 1, result.JobCount)
	require.Equal(t, 1, result.FailedCount)
	require.Equal(t, []string{"1 a", "1 b"}, reapertest.Column(t, pool, `select id || ' ' || part from jobs order by 1`))
}
