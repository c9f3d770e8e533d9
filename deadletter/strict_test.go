package deadletter_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// sendStrictly sends a batch whose commit travels behind the mover's statements.
func sendStrictly(t *testing.T, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
	t.Helper()
	b := &pgx.Batch{}
	receipts := deadletter.Table{}.QueueStrict(b, batch)
	b.Queue("commit")
	if err := tx.SendBatch(t.Context(), b).Close(); err != nil {
		return nil, err
	}
	return receipts()
}

// What goes through strictly is what goes through otherwise.
func TestStrictTableStoresAndReports(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ids := enqueue(t, pool, many(50)...)
	tx := begin(t, pool)

	receipts, err := sendStrictly(t, tx, claim(t, tx, reference(), ids))

	require.NoError(t, err)
	require.Len(t, receipts, len(ids))
	for i, receipt := range receipts {
		require.Equal(t, ids[i], receipt.JobID)
		require.False(t, receipt.Refused)
		stored := decode[struct {
			ID string `json:"dead_letter_id"`
		}](t, receipt)
		var jobID string
		require.NoError(t, pool.QueryRow(t.Context(),
			`select job_id::text from job_dead_letter where dead_letter_id = $1`, stored.ID).Scan(&jobID))
		require.Equal(t, ids[i], jobID)
	}
}

// A commit behind a job that was not stored loses the job.
func TestStrictTableKeepsACommitFromLosingAJob(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ before string }{
		"a trigger turns one away": {`create function away() returns trigger language plpgsql as
			$fn$ begin if new.job_kind = 'odd' then return null; end if; return new; end $fn$;
			create trigger away before insert on job_dead_letter for each row execute function away()`},
		"a trigger turns all away": {`create function away() returns trigger language plpgsql as
			$fn$ begin return null; end $fn$;
			create trigger away before insert on job_dead_letter for each row execute function away()`},
		"a trigger takes one for another": {`create function away() returns trigger language plpgsql as
			$fn$ begin new.job_id := gen_random_uuid(); return new; end $fn$;
			create trigger away before insert on job_dead_letter for each row execute function away()`},
		"one is not in the queue": {`delete from job_queue where job_kind = 'odd'`},
		"one is in the queue twice": {`alter table job_queue drop constraint job_queue_pkey;
			insert into job_queue select * from job_queue where job_kind = 'odd'`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			ids := enqueue(t, pool, "even", "odd", "even")
			tx := begin(t, pool)
			batch := claim(t, tx, reference(), ids)
			_, err := tx.Exec(t.Context(), test.before)
			require.NoError(t, err)

			_, err = sendStrictly(t, tx, batch)

			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr)
			require.Equal(t, "22012", pgErr.Code)
			require.NoError(t, tx.Rollback(t.Context()))
			var stored int
			require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from job_dead_letter`).Scan(&stored))
			require.Zero(t, stored)
		})
	}
}
