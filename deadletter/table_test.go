package deadletter_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

const dropMail = `
create function drop_mail() returns trigger language plpgsql as $$
begin
  if new.job_kind = 'mail' then
    return null;
  end if;
  return new;
end
$$;
create trigger drop_mail before insert on job_dead_letter for each row execute function drop_mail()`

// A trigger may drop a row without an error. A job whose dead letter was not
// stored must not leave the queue, and must not hold up the others.
func TestTableRefusesTheRowThatATriggerDropped(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, dropMail)
	ids := enqueue(t, pool, "invoice", "mail", "report")
	tx := reapertest.Begin(t, pool)

	receipts, err := deadletter.Table{}.Move(t.Context(), tx, claim(t, tx, reference(), ids))
	require.NoError(t, err)
	require.Len(t, receipts, 3)
	for i, refused := range []bool{false, true, false} {
		require.Equal(t, ids[i], receipts[i].JobID)
		require.Equal(t, refused, receipts[i].Refused)
		require.Equal(t, refused, receipts[i].Reason != "")
		require.Equal(t, refused, receipts[i].Document == nil)
	}
	require.Equal(t, "invoice,report", reapertest.One[string](t, tx, `select string_agg(job_kind, ',' order by job_kind) from job_dead_letter`))
}

// A queue's row that is not there cannot be stored. Reported as moved, it would
// be a job that is nowhere.
func TestTableRefusesAJobThatIsNotInTheQueue(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ids := enqueue(t, pool, "invoice")
	tx := reapertest.Begin(t, pool)
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

// The dead letter is all that is left of a job. What is missing in it, or was
// rounded on its way, nobody can bring back.
func TestTableStoresTheWholeRow(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `alter table job_queue
  add column big bigint default 9007199254740993,
  add column exact numeric(40,10) default 123456789012345678901234567890.0123456789,
  add column tags text[] default '{a,"b c",null}',
  add column "Customer's ""no""" text default 'x ☃ \ "',
  add column since timestamptz default '-infinity',
  add column ratio double precision default 0.1,
  add column raw bytea default '\x00ff'`)
	ids := enqueue(t, pool, "invoice", "mail")
	reapertest.Exec(t, pool, `update job_queue set payload = '{"n": 9007199254740993, "f": 1.10, "b": null}', last_error = 'before'`)
	tx := reapertest.Begin(t, pool)
	batch := claim(t, tx, reference(), ids)
	row := reapertest.One[string](t, tx, `select to_jsonb(j.*)::text from job_queue j where job_id = $1`, ids[0])

	_, err := deadletter.Table{}.Move(t.Context(), tx, batch)
	require.NoError(t, err)

	var stored struct {
		JobKind               string
		Attempts, MaxAttempts int
		FinalError, MovedBy   string
		MovedNow, HasID       bool
		Job                   string
		RedrivenAt            *string
	}
	err = tx.QueryRow(t.Context(), `
select job_kind, attempts, max_attempts, final_error, moved_by, moved_at = now(), dead_letter_id is not null, job::text,
  redriven_at::text
from job_dead_letter where job_id = $1`, ids[0]).Scan(&stored.JobKind, &stored.Attempts, &stored.MaxAttempts,
		&stored.FinalError, &stored.MovedBy, &stored.MovedNow, &stored.HasID, &stored.Job, &stored.RedrivenAt)
	require.NoError(t, err)
	require.Equal(t, "invoice", stored.JobKind)
	require.Equal(t, 5, stored.Attempts)
	require.Equal(t, 5, stored.MaxAttempts)
	require.Equal(t, finalError, stored.FinalError)
	require.Equal(t, actor, stored.MovedBy)
	require.True(t, stored.MovedNow)
	require.True(t, stored.HasID)
	require.Nil(t, stored.RedrivenAt)
	require.Equal(t, row, stored.Job)
	for _, exact := range []string{
		`"big": 9007199254740993`, `"exact": 123456789012345678901234567890.0123456789`, `"n": 9007199254740993`,
		`"f": 1.10`, `"attempts": 5`, `"since": "-infinity"`, `"last_error": "before"`,
	} {
		require.Contains(t, stored.Job, exact)
	}
	require.Equal(t, "2", reapertest.One[string](t, tx, `select count(*)::text from job_dead_letter`))
	require.Equal(t, "2", reapertest.One[string](t, tx, `select count(*)::text from job_queue where state = 'leased' and lease_until is not null`),
		"closing the queue rows is the reaper's part")
}

// The receipt goes into the apply's JSON, which other tools read by its fields.
func TestTablesReceiptHasTheDocumentedFields(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ids := enqueue(t, pool, "invoice")
	tx := reapertest.Begin(t, pool)

	receipts, err := deadletter.Table{}.Move(t.Context(), tx, claim(t, tx, reference(), ids))
	require.NoError(t, err)
	require.Len(t, receipts, 1)
	require.Equal(t, ids[0], receipts[0].JobID)
	require.False(t, receipts[0].Refused)
	require.Empty(t, receipts[0].Reason)

	var document map[string]any
	require.NoError(t, json.Unmarshal(receipts[0].Document, &document))
	require.Equal(t, map[string]any{
		"dead_letter_id": reapertest.One[string](t, tx, `select dead_letter_id::text from job_dead_letter`),
		"job_id":         ids[0],
		"state":          "dead_letter",
		"refused":        false,
		"attempts":       5.0,
		"final_error":    finalError,
	}, document)
}

// Receipts are told apart by their job. One that were another job's would put a
// wrong dead letter into the report.
func TestTablesReceiptsFollowTheBatch(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ids := enqueue(t, pool, many(300)...)
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	tx := reapertest.Begin(t, pool)

	receipts, err := deadletter.Table{}.Move(t.Context(), tx, claim(t, tx, reference(), ids))
	require.NoError(t, err)
	require.Len(t, receipts, len(ids))
	for i, receipt := range receipts {
		require.Equal(t, ids[i], receipt.JobID)
		var document struct {
			JobID        string `json:"job_id"`
			DeadLetterID string `json:"dead_letter_id"`
		}
		require.NoError(t, json.Unmarshal(receipt.Document, &document))
		require.Equal(t, ids[i], document.JobID)
		require.Equal(t, ids[i],
			reapertest.One[string](t, tx, `select job_id::text from job_dead_letter where dead_letter_id = $1`, document.DeadLetterID))
	}
}

// A user's column may have any name, also one that the statement uses itself.
// The whole row has to arrive, not that column.
func TestTableCopiesARowWhoseColumnsHaveAnyName(t *testing.T) {
	t.Parallel()

	for _, column := range []string{"q", "job", "job_queue", "dead_letter_id", "final_error", "{job_id}", "$2", "to_jsonb"} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			reapertest.Exec(t, pool, `alter table job_queue add column `+pgx.Identifier{column}.Sanitize()+` text default 'mine'`)
			ids := enqueue(t, pool, "invoice")
			tx := reapertest.Begin(t, pool)

			_, err := deadletter.Table{}.Move(t.Context(), tx, claim(t, tx, reference(), ids))
			require.NoError(t, err)
			var job map[string]any
			require.NoError(t, json.Unmarshal([]byte(reapertest.One[string](t, tx, `select job::text from job_dead_letter`)), &job))
			require.Equal(t, "mine", job[column])
			require.Equal(t, ids[0], job["job_id"])
		})
	}
}

// A batch that cannot be stored is an error with the server's code, by which the
// reaper tells a bad row from a missing table.
func TestTableThatFailsIsTheServersError(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		setUp    string
		name     pgx.Identifier
		sqlState string
	}{
		"no table":        {`select 1`, pgx.Identifier{"dead"}, "42P01"},
		"no schema":       {`select 1`, pgx.Identifier{"ops", "job_dead_letter"}, "42P01"},
		"other columns":   {`select 1`, pgx.Identifier{"queue_config"}, "42703"},
		"a constraint":    {`alter table job_dead_letter add check (job_kind <> 'mail')`, nil, "23514"},
		"a unique index":  {`create unique index on job_dead_letter (attempts)`, nil, "23505"},
		"a queue renamed": {`alter table job_queue rename to jobs`, nil, "42P01"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			ids := enqueue(t, pool, "invoice", "mail")
			tx := reapertest.Begin(t, pool)
			batch := claim(t, tx, reference(), ids)
			reapertest.Exec(t, tx, test.setUp)

			receipts, err := deadletter.Table{Name: test.name}.Move(t.Context(), tx, batch)
			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr)
			require.Equal(t, test.sqlState, pgErr.Code)
			require.Nil(t, receipts)
		})
	}
}
