package deadletter_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/oracle"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// asked is what a function in these tests says it was called with.
type asked struct{ Job, Actor, Error string }

// decode reads a receipt's document.
func decode[T any](t *testing.T, receipt deadletter.Receipt) (document T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(receipt.Document, &document))
	return document
}

// Organisations that have the reference's function keep it. It has to find the
// jobs as the reaper left them, and what it returns has to arrive.
func TestFunctionCallsTheReferencesMover(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, oracle.Functions)
	ids := enqueue(t, pool, "invoice", "mail")
	tx := reapertest.Begin(t, pool)

	receipts, err := deadletter.Function{}.Move(t.Context(), tx, claim(t, tx, reference(), ids))
	require.NoError(t, err)
	require.Len(t, receipts, 2)
	for i, receipt := range receipts {
		require.Equal(t, ids[i], receipt.JobID)
		require.False(t, receipt.Refused)
		require.Equal(t, map[string]any{
			"dead_letter_id": reapertest.One[string](t, tx, `select dead_letter_id::text from job_dead_letter where job_id = $1`, ids[i]),
			"job_id":         ids[i],
			"state":          "dead_letter",
			"refused":        false,
			"attempts":       5.0,
			"final_error":    finalError,
		}, decode[map[string]any](t, receipt))
	}
	require.Equal(t, "2", reapertest.One[string](t, tx, `
select count(*)::text
from job_dead_letter d join job_queue q using (job_id)
where d.moved_by = $1 and d.final_error = $2 and (d.job ->> 'attempts')::int = 5
and q.state = 'dead_letter' and q.last_error = d.final_error`, actor, finalError))
}

// The two movers must not leave different dead letters behind.
func TestFunctionAndTableStoreTheSame(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, oracle.Functions)
	reapertest.Exec(t, pool, `alter table job_queue add column exact numeric(40,10) default 9007199254740993.1`)
	ids := enqueue(t, pool, "invoice")

	var stored, documents []string
	for _, mover := range []deadletter.Mover{deadletter.Table{}, deadletter.Function{}} {
		tx := reapertest.Begin(t, pool)
		receipts, err := mover.Move(t.Context(), tx, claim(t, tx, reference(), ids))
		require.NoError(t, err)
		stored = append(stored, reapertest.One[string](t, tx,
			`select (to_jsonb(d) - 'dead_letter_id' - 'moved_at')::text from job_dead_letter d`))
		document := decode[map[string]json.RawMessage](t, receipts[0])
		delete(document, "dead_letter_id")
		text, err := json.Marshal(document)
		require.NoError(t, err)
		documents = append(documents, string(text))
		require.NoError(t, tx.Rollback(t.Context()))
	}
	require.Equal(t, stored[0], stored[1])
	require.Equal(t, documents[0], documents[1])
}

const logCalls = `
create table calls (n bigserial, job uuid, actor text, error text);
create function fn_log(uuid, text, text) returns jsonb language sql as $$
  insert into calls (job, actor, error) values ($1, $2, $3) returning jsonb_build_object('n', n)
$$`

// The function may number the dead letters or charge for them: it is called once
// for each job, the oldest lease first, whatever order the server likes better.
func TestFunctionIsCalledOnceAJobInTheBatchsOrder(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, logCalls)
	ids := enqueue(t, pool, many(300)...)
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	tx := reapertest.Begin(t, pool)

	mover := deadletter.Function{Name: pgx.Identifier{"fn_log"}}
	receipts, err := mover.Move(t.Context(), tx, claim(t, tx, reference(), ids))
	require.NoError(t, err)
	require.Len(t, receipts, len(ids))
	for i, receipt := range receipts {
		require.Equal(t, ids[i], receipt.JobID)
		require.Equal(t, i+1, decode[struct{ N int }](t, receipt).N)
	}
	require.Equal(t, strings.Join(ids, ","), reapertest.One[string](t, tx, `select string_agg(job::text, ',' order by n) from calls`))
	require.Equal(t, "300", reapertest.One[string](t, tx,
		`select count(*)::text from calls where actor = $1 and error = $2`, actor, finalError))
}

const refuseMail = `
create function fn_refuse_mail(p_job uuid, p_actor text, p_error text) returns jsonb language sql as $$
  select case when job_kind = 'mail'
    then jsonb_build_object('refused', true, 'reason', 'mail never dies', 'job', p_job)
    else jsonb_build_object('refused', false, 'job', p_job)
  end
  from job_queue where job_id = p_job
$$`

// A function that keeps a kind back must not have its refusal put on another job.
func TestFunctionMayRefuseSomeJobs(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, refuseMail)
	kinds := []string{"invoice", "mail", "report", "mail"}
	ids := enqueue(t, pool, kinds...)
	tx := reapertest.Begin(t, pool)

	mover := deadletter.Function{Name: pgx.Identifier{"fn_refuse_mail"}}
	receipts, err := mover.Move(t.Context(), tx, claim(t, tx, reference(), ids))
	require.NoError(t, err)
	require.Len(t, receipts, len(kinds))
	for i, receipt := range receipts {
		require.Equal(t, ids[i], receipt.JobID)
		require.Equal(t, ids[i], decode[asked](t, receipt).Job)
		require.Equal(t, kinds[i] == "mail", receipt.Refused)
		require.Equal(t, kinds[i] == "mail", receipt.Reason == "mail never dies")
	}
}

// calling is a mover of the caller's, which logs what it is given.
type calling struct {
	deadletter.Function
	moved *[]string
}

func (c calling) Move(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
	*c.moved = append(*c.moved, batch.IDs()...)
	return c.Function.Move(ctx, tx, batch)
}

// Whoever embeds a mover to add to what it does must not be gone around.
func TestATypeAroundAFunctionIsCalled(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, oracle.Functions)
	ids := enqueue(t, pool, "invoice")
	var moved []string
	r, err := reaper.New(pool, reaper.Config{
		Gates: reapertest.OpenGate, DeadLetter: calling{moved: &moved},
	})
	require.NoError(t, err)

	result, err := r.Apply(t.Context(), actor, 10)

	require.NoError(t, err)
	require.Equal(t, 1, result.DeadLetterCount)
	require.Equal(t, ids, moved)
}

// A function that is not there, or is not the one that was meant, is the server's
// error, for an operator to see at the first dead job.
func TestFunctionThatCannotBeCalledIsTheServersError(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		setUp    string
		name     pgx.Identifier
		sqlState string
	}{
		"missing":                {`select 1`, nil, "42883"},
		"missing under its name": {`select 1`, pgx.Identifier{"public", "fn_move"}, "42883"},
		"in a missing schema":    {`select 1`, pgx.Identifier{"ops", "fn_move"}, "3F000"},
		"for another key":        {`create function fn_move(bigint, text, text) returns jsonb language sql as 'select null::jsonb'`, pgx.Identifier{"fn_move"}, "42883"},
		"with other parameters":  {`create function fn_move(uuid, text) returns jsonb language sql as 'select null::jsonb'`, pgx.Identifier{"fn_move"}, "42883"},
		"a table's name":         {`select 1`, pgx.Identifier{"job_dead_letter"}, "42883"},
		"one that raises": {`create function fn_move(uuid, text, text) returns jsonb language plpgsql
			as $$ begin raise 'no' using errcode = 'JQ001'; end $$`, pgx.Identifier{"fn_move"}, "JQ001"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			reapertest.Exec(t, pool, test.setUp)
			ids := enqueue(t, pool, "invoice")
			tx := reapertest.Begin(t, pool)

			receipts, err := deadletter.Function{Name: test.name}.Move(t.Context(), tx, claim(t, tx, reference(), ids))
			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr)
			require.Equal(t, test.sqlState, pgErr.Code)
			require.Nil(t, receipts)
		})
	}
}
