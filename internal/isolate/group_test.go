package isolate_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/isolate"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// Later statements of the transaction may violate a deferred constraint temporarily.
func TestConstraintsAreDeferredAgain(t *testing.T) {
	t.Parallel()
	r := open(t, atLast+`'23503')`)
	r.Constraints = true

	require.NoError(t, r.Write(t.Context(), upTo(3)))

	reapertest.Exec(t, r.Tx, `insert into bad values (7)`)
	reapertest.Exec(t, r.Tx, `insert into things values (7)`)
	reapertest.Exec(t, r.Tx, `delete from bad`)
	require.Equal(t, []int{0, 1, 2, 7}, r.stored(t))
}

// The writes of a mover may violate a deferred constraint too. Then the commit would fail
// for all jobs.
func TestConstraintsOfLaterWritesAreChecked(t *testing.T) {
	t.Parallel()
	r := open(t, atLast+`'23503')`)
	r.Constraints, r.WritesLater = true, true
	reapertest.Exec(t, r.Tx, `insert into bad values (5)`)
	r.Queue = func(_ *pgx.Batch, items []int) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := r.Tx.Exec(ctx, `insert into things select unnest($1::int[])`, items)
			return err
		}
	}

	require.NoError(t, r.Write(t.Context(), upTo(8)))

	require.Len(t, r.rejected, 1)
	require.Equal(t, "23503", pgtx.Code(r.rejected[5]))
	require.Equal(t, upTo(8, 5), r.stored(t))
}

// The server's statement_timeout ends a group that is too large, like one with a slow row.
// Without a bound a huge batch would be halved for minutes.
func TestTheBudgetOfTimeOuts(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		budget time.Duration
		ends   bool
	}{
		"no bound":           {0, false},
		"a bound that holds": {time.Minute, false},
		"a bound":            {time.Millisecond, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, judging+`'slow')`)
			r.TimedOutBudget = test.budget
			reapertest.Exec(t, r.Tx, `insert into bad values (3)`)
			reapertest.Exec(t, r.Tx, `set local statement_timeout = '150ms'`)

			err := r.Write(t.Context(), upTo(6))

			if test.ends {
				require.Equal(t, pgtx.CodeQueryCanceled, pgtx.Code(err))
				return
			}
			require.NoError(t, err)
			require.Len(t, r.rejected, 1)
			require.Equal(t, pgtx.CodeQueryCanceled, pgtx.Code(r.rejected[3]))
			require.Equal(t, upTo(6, 3), r.stored(t))
		})
	}
}

// If a CHECK rejects the new attempts of a job, the job is moved with its old attempts.
func TestAChangedItemIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := open(t, judging+`'23514')`)
	reapertest.Exec(t, r.Tx, `insert into bad values (2), (4)`)
	r.Again = func(n int, _ error) bool {
		if n == 2 {
			reapertest.Exec(t, r.Tx, `delete from bad where n = 2`)
		}
		return true
	}

	require.NoError(t, r.Write(t.Context(), upTo(6)))

	require.Len(t, r.rejected, 1)
	require.Contains(t, r.rejected, 4)
	require.Equal(t, upTo(6, 4), r.stored(t))
}

// After an error that concerns no item, such as that of a read-only database, the batch
// must not be bisected.
func TestAnErrorThatEndsTheTransactionIsReturned(t *testing.T) {
	t.Parallel()
	r := open(t, judging+`'25006')`)
	reapertest.Exec(t, r.Tx, `insert into bad values (2)`)
	r.Ends = func(err error) bool { return pgtx.Code(err) == pgtx.CodeReadOnly }

	err := r.Write(t.Context(), upTo(6))

	require.Equal(t, pgtx.CodeReadOnly, pgtx.Code(err))
	require.Equal(t, 1, r.tries)
	require.Empty(t, r.rejected)
}

// If a RejectedError has only items that are not in the group, a retry would not end.
func TestARejectionThatNamesNoneOfTheItemsIsAnError(t *testing.T) {
	t.Parallel()
	r := open(t)
	r.Queue = func(*pgx.Batch, []int) func(context.Context) error {
		return func(context.Context) error {
			return &isolate.RejectedError[int]{Causes: map[int]error{99: errIgnored}}
		}
	}

	var rejected *isolate.RejectedError[int]
	require.ErrorAs(t, r.Write(t.Context(), upTo(6)), &rejected)
	require.Empty(t, r.rejected)
}

// Each locked row would cost the whole wait. After an error of another kind the short wait
// must still be set, although the rollback has undone the setting.
func TestOnlyTheFirstLockCostsTheWholeWait(t *testing.T) {
	t.Parallel()
	r := open(t, judging+`'23514')`, `create unique index on things (n)`)
	other := reapertest.Begin(t, r.pool)
	reapertest.Exec(t, other, `insert into things values (2), (4), (5), (9)`)
	reapertest.Exec(t, r.Tx, `insert into bad values (1), (3), (6), (7)`)
	reapertest.Exec(t, r.Tx, `set local lock_timeout = '200ms'`)
	r.ShortLockTimeout = `set local lock_timeout = '7ms'`
	r.ConcernsAll = func(error) bool { return false }

	require.NoError(t, r.Write(t.Context(), upTo(12)))

	for n, code := range map[int]string{2: "55P03", 4: "55P03", 5: "55P03", 9: "55P03", 1: "23514", 3: "23514", 6: "23514", 7: "23514"} {
		require.Equal(t, code, pgtx.Code(r.rejected[n]))
	}
	require.Len(t, r.rejected, 8)
	timeouts := strings.Join(slices.Compact(r.timeouts), " ")
	require.Equal(t, "200ms 7ms", timeouts)
	require.True(t, r.LockTimedOut)
	require.NoError(t, other.Rollback(t.Context()))
	require.Equal(t, []int{0, 8, 10, 11}, r.stored(t))
}

// A statement that cannot be prepared aborts the transaction. Without an earlier savepoint
// the previous writes would be lost.
func TestAStatementThatCannotBePreparedBlocks(t *testing.T) {
	t.Parallel()
	r := open(t)
	reapertest.Exec(t, r.Tx, `insert into things values (-1)`)
	r.Queue = func(batch *pgx.Batch, items []int) func(context.Context) error {
		batch.Queue(`insert into missing select unnest($1::int[])`, items)
		return func(context.Context) error { return nil }
	}

	require.NoError(t, r.Write(t.Context(), upTo(100)))

	require.Equal(t, "42P01", pgtx.Code(r.Blocked))
	require.Len(t, r.rejected, 100)
	require.Equal(t, []int{-1}, r.stored(t))
}
