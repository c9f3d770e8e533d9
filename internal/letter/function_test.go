package letter_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/letter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

func TestMain(m *testing.M) { reapertest.Main(m) }

// A call in a batch must see the changes of earlier statements, show its own to later
// ones, and keep its rows apart from theirs.
func TestACallTravelsWithOtherStatements(t *testing.T) {
	t.Parallel()
	admin := reapertest.WithOracle(t, pgtest.New(t))
	reapertest.Stale(t, admin, "invoice", 1, 5, 5)
	reapertest.Stale(t, admin, "mail", 1, 5, 5)
	ids := reapertest.One[[]string](t, admin, `select array_agg(job_id::text order by job_kind) from job_queue`)
	for mode, pool := range reapertest.InEveryMode(t, admin) {
		tx := reapertest.Begin(t, pool)
		call := letter.Call{
			Function: pgx.Identifier{letter.DefaultFunction}, Table: pgx.Identifier{"job_queue"}, JobID: "job_id",
			IDs: ids, Actor: reapertest.Actor, FinalError: "e",
		}
		var kinds string
		b := &pgx.Batch{}
		b.Queue(`update job_queue set job_kind = upper(job_kind)`)
		documents := call.Queue(b)
		b.Queue(`select string_agg(job_kind, ',' order by job_kind) from job_dead_letter`).
			QueryRow(func(row pgx.Row) error { return row.Scan(&kinds) })
		require.Equal(t, 3, b.Len(), mode)
		require.NoError(t, tx.SendBatch(t.Context(), b).Close(), mode)

		got, err := letter.Receipts(ids, *documents, deadletter.NewReceipt, deadletter.Refuse)
		require.NoError(t, err, mode)
		require.Len(t, got, 2, mode)
		for i, receipt := range got {
			require.Equal(t, ids[i], receipt.JobID, mode)
			require.False(t, receipt.Refused, mode)
		}
		require.Equal(t, "INVOICE,MAIL", kinds, mode)
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// A function that finds no job returns NULL. A function that returns an invalid document
// may have moved the job or not. Neither may count as a move.
func TestReceiptsAreOfTheJobsInTheirOrder(t *testing.T) {
	t.Parallel()

	got, err := letter.Receipts([]string{"1", "2", "3"}, [][]byte{nil, []byte("null"), []byte(`{"refused":false}`)},
		deadletter.NewReceipt, deadletter.Refuse)
	require.NoError(t, err)
	require.Equal(t, []deadletter.Receipt{
		deadletter.Refuse("1", "the function returned NULL"),
		deadletter.Refuse("2", "the function returned NULL"),
		{JobID: "3", Document: []byte(`{"refused":false}`)},
	}, got)

	got, err = letter.Receipts([]string{"1", "2"}, [][]byte{[]byte(`{}`), []byte(`[]`)}, deadletter.NewReceipt, deadletter.Refuse)
	require.Error(t, err)
	require.Nil(t, got)
}
