package deadletter_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

const turnAwayMail = `
create function turn_away_mail() returns trigger language plpgsql as $$
begin
  if new.job_kind = 'mail' then
    return null;
  end if;
  return new;
end
$$;
create trigger turn_away_mail before insert on job_dead_letter for each row execute function turn_away_mail()`

// A trigger may drop a row without an error. A job whose dead letter was not
// stored must not leave the queue, and must not hold up the others.
func TestTableRefusesTheRowThatATriggerDropped(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	execute(t, pool, turnAwayMail)
	ids := enqueue(t, pool, "invoice", "mail", "report")
	tx := begin(t, pool)

	receipts, err := deadletter.Table{}.Move(t.Context(), tx, claim(t, tx, reference(), ids))
	require.NoError(t, err)
	require.Len(t, receipts, 3)
	for i, refused := range []bool{false, true, false} {
		require.Equal(t, ids[i], receipts[i].JobID)
		require.Equal(t, refused, receipts[i].Refused)
		require.Equal(t, refused, receipts[i].Reason != "")
		require.Equal(t, refused, receipts[i].Document == nil)
	}
	require.Equal(t, "invoice,report", value(t, tx, `select string_agg(job_kind, ',' order by job_kind) from job_dead_letter`))
}

// A queue's row that is not there cannot be stored. Reported as moved, it would
// be a job that is nowhere.
func TestTableRefusesAJobThatIsNotInTheQueue(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ids := enqueue(t, pool, "invoice")
	tx := begin(t, pool)
	batch := claim(t, tx, reference(), ids)
	gone := deadletter.Job{ID: "00000000-0000-4000-8000-000000000000", Attempts: 5}
	batch.Jobs = append([]deadletter.Job{gone}, batch.Jobs...)

	receipts, err := deadletter.Table{}.Move(t.Context(), tx, batch)
	require.NoError(t, err)
	require.Len(t, receipts, 2)
	require.Equal(t, gone.ID, receipts[0].JobID)
	require.True(t, receipts[0].Refused)
	require.Equal(t, ids[0], receipts[1].JobID)
	require.False(t, receipts[1].Refused)
}

// A function that returns a set could answer one job twice and another not at
// all; taken in order, the second answer would pass for the other job's.
func TestFunctionThatReturnsASetAnswersEachJobForItself(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ids := enqueue(t, pool, "twice", "never")
	_, err := pool.Exec(t.Context(), `create function set_of(p_job_id uuid, p_actor text, p_error text)
		returns setof jsonb language sql as $$
			select jsonb_build_object('job_id', q.job_id, 'refused', false)
			from job_queue q, generate_series(1, 2) where q.job_id = p_job_id and q.job_kind = 'twice' $$`)
	require.NoError(t, err)
	mover := deadletter.Function{Name: pgx.Identifier{"set_of"}}

	receipts, err := inTx(t, pool, mover, ids[1])
	require.NoError(t, err)
	require.True(t, receipts[0].Refused)

	_, err = inTx(t, pool, mover, ids...)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "21000", pgErr.Code) // cardinality_violation
}

func inTx(t *testing.T, pool *pgxpool.Pool, mover deadletter.Mover, ids ...string) ([]deadletter.Receipt, error) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // nothing is kept
	batch := deadletter.Batch{Actor: actor, FinalError: finalError, Queue: reference()}
	for _, id := range ids {
		batch.Jobs = append(batch.Jobs, deadletter.Job{ID: id, Attempts: 5})
	}
	return mover.Move(t.Context(), tx, batch)
}
