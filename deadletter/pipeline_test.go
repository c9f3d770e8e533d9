package deadletter_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/oracle"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// A mover whose statement travels between others must see what those before it
// did, show those after it what it did, and keep its rows apart from theirs.
func TestPipelinersTravelWithOtherStatements(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ mover deadletter.Pipeliner }{
		"a function": {deadletter.Function{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			execute(t, pool, oracle.Functions)
			ids := enqueue(t, pool, "invoice", "mail")
			for mode, pool := range inEveryMode(t, pool) {
				tx := begin(t, pool)
				moved := claim(t, tx, reference(), ids)
				var kinds string
				b := &pgx.Batch{}
				b.Queue(`update job_queue set job_kind = upper(job_kind)`)
				receipts := test.mover.Queue(b, moved)
				b.Queue(`select string_agg(job_kind, ',' order by job_kind) from job_dead_letter`).
					QueryRow(func(row pgx.Row) error { return row.Scan(&kinds) })
				require.Equal(t, 3, b.Len(), mode)
				require.NoError(t, tx.SendBatch(t.Context(), b).Close(), mode)

				got, err := receipts()
				require.NoError(t, err, mode)
				require.Len(t, got, 2, mode)
				for i, receipt := range got {
					require.Equal(t, ids[i], receipt.JobID, mode)
					require.False(t, receipt.Refused, mode)
				}
				require.Equal(t, "INVOICE,MAIL", kinds, mode)
				require.NoError(t, tx.Rollback(t.Context()))
			}
		})
	}
}

// A name that nothing can have must not reach the server, also in a batch.
func TestPipelinersQueueNothingUnderAnImpossibleName(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ mover deadletter.Pipeliner }{
		"a function": {deadletter.Function{Name: pgx.Identifier{"a\x00"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &pgx.Batch{}
			receipts := test.mover.Queue(b, deadletter.Batch{Jobs: []deadletter.Job{{ID: "1"}}})
			require.Zero(t, b.Len())
			got, err := receipts()
			require.ErrorIs(t, err, pgtext.ErrName)
			require.Nil(t, got)
		})
	}
}
