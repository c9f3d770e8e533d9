package deadletter_test

import (
	"testing"

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
