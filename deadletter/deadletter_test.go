package deadletter_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/oracle"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// The reaper's batch must reach a function of the user's as it is, and its answer
// come back so.
func TestMoverFuncPassesEverythingThrough(t *testing.T) {
	t.Parallel()
	batch := deadletter.Batch{
		Actor: "a", FinalError: "e", Jobs: []deadletter.Job{{ID: "7", Attempts: 5}, {ID: "3", Attempts: 9}}, Queue: reference(),
	}
	require.Equal(t, []string{"7", "3"}, batch.IDs())
	full := errors.New("the store is full")
	want := []deadletter.Receipt{deadletter.Refuse("3", "no"), {JobID: "7"}}

	type key struct{}
	var seen deadletter.Batch
	mover := deadletter.MoverFunc(func(ctx context.Context, _ pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
		require.Equal(t, "the caller's", ctx.Value(key{}))
		seen = batch
		return want, full
	})
	receipts, err := mover.Move(context.WithValue(t.Context(), key{}, "the caller's"), nil, batch)
	require.ErrorIs(t, err, full)
	require.Equal(t, want, receipts)
	require.Equal(t, batch, seen)
}

// A mover that sends a statement for each job takes minutes where the network is
// slow, with the rows locked all the while. The table's asks for its type first.
func TestMoversSendTheSameStatementsWhateverTheBatch(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		mover      deadletter.Mover
		statements int
	}{
		"a table":    {deadletter.Table{}, 4},
		"a function": {deadletter.Function{}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			reapertest.Exec(t, pool, oracle.Functions)
			recorded, recorder := reapertest.Recording(t, pool)

			for _, size := range []int{1, 10, 1000} {
				tx := reapertest.Begin(t, recorded)
				batch := claim(t, tx, reference(), enqueue(t, pool, many(size)...))
				before := len(recorder.Statements())
				receipts, err := test.mover.Move(t.Context(), tx, batch)
				require.NoError(t, err)
				require.Len(t, receipts, size)
				require.Len(t, recorder.Statements()[before:], test.statements, "for %d jobs", size)
				require.NoError(t, tx.Rollback(t.Context()))
			}
		})
	}
}
