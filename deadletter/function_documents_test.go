package deadletter_test

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// returning creates a function that returns an SQL expression, and calls it for
// one job, in each way in which pgx can run a query.
func returning(t *testing.T, sql string) map[pgx.QueryExecMode]answer {
	t.Helper()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `create function fn_answer(uuid, text, text) returns jsonb language sql as $fn$ select `+sql+` $fn$`)
	ids := enqueue(t, pool, "invoice")
	answers := map[pgx.QueryExecMode]answer{}
	for mode, pool := range reapertest.InEveryMode(t, pool) {
		tx := reapertest.Begin(t, pool)
		mover := deadletter.Function{Name: pgx.Identifier{"fn_answer"}}
		receipts, err := mover.Move(t.Context(), tx, claim(t, tx, reference(), ids))
		answers[mode] = answer{ids[0], receipts, err}
		require.NoError(t, tx.Rollback(t.Context()))
	}
	return answers
}

type answer struct {
	id       string
	receipts []deadletter.Receipt
	err      error
}

// Whatever a function has to say belongs into the report, to the last digit, and
// its refusal must not be taken for a move.
func TestFunctionsObjectIsKeptWhole(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		returns  string // SQL
		document string
		refused  bool
		reason   string
	}{
		"nothing to say":       {`'{}'::jsonb`, `{}`, false, ""},
		"fields of its own":    {`'{"ticket": "T-1", "refused": false}'::jsonb`, `{"ticket":"T-1","refused":false}`, false, ""},
		"a big number":         {`'{"n": 9007199254740993}'::jsonb`, `{"n":9007199254740993}`, false, ""},
		"a long number":        {`'{"n": 123456789012345678901234567890.0123456789}'::jsonb`, `{"n":123456789012345678901234567890.0123456789}`, false, ""},
		"trailing zeros":       {`'{"n": 1.10}'::jsonb`, `{"n":1.10}`, false, ""},
		"nested ones":          {`'{"a": [1, {"b": null}], "c": "x y"}'::jsonb`, `{"a":[1,{"b":null}],"c":"x y"}`, false, ""},
		"special characters":   {`'{"a": "<&>☃\u2028\\\""}'::jsonb`, "{\"a\":\"<&>☃\u2028\\\\\\\"\"}", false, ""},
		"another job's key":    {`'{"job_id": 7}'::jsonb`, `{"job_id":7}`, false, ""},
		"a refusal":            {`'{"refused": true, "reason": "not now"}'::jsonb`, `{"reason":"not now","refused":true}`, true, "not now"},
		"a refusal with more":  {`'{"refused": true, "reason": "x", "until": 9007199254740993}'::jsonb`, `{"until":9007199254740993,"reason":"x","refused":true}`, true, "x"},
		"an unreasoned one":    {`'{"refused": true}'::jsonb`, `{"refused":true}`, true, ""},
		"a reason of null":     {`'{"refused": true, "reason": null}'::jsonb`, `{"reason":null,"refused":true}`, true, ""},
		"a numbered reason":    {`'{"refused": true, "reason": 42}'::jsonb`, `{"reason":42,"refused":true}`, true, "42"},
		"refused is null":      {`'{"refused": null}'::jsonb`, `{"refused":null}`, false, ""},
		"a reason for no harm": {`'{"refused": false, "reason": "fine"}'::jsonb`, `{"reason":"fine","refused":false}`, false, "fine"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for mode, answer := range returning(t, test.returns) {
				require.NoError(t, answer.err, mode)
				require.Len(t, answer.receipts, 1, mode)
				got := answer.receipts[0]
				require.Equal(t, answer.id, got.JobID, mode)
				require.Equal(t, test.refused, got.Refused, mode)
				require.Equal(t, test.reason, got.Reason, mode)
				require.Equal(t, test.document, ordered(t, got.Document, test.document), mode)
			}
		})
	}
}

// ordered returns document, or want when the two differ by nothing but the order
// of jsonb, which is the server's. Numbers are compared as they are written.
func ordered(t *testing.T, document json.RawMessage, want string) string {
	t.Helper()
	var got, wanted map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(document, &got))
	require.NoError(t, json.Unmarshal([]byte(want), &wanted))
	if len(document) == len(want) && equal(got, wanted) {
		return want
	}
	return string(document)
}

func equal(a, b map[string]json.RawMessage) bool {
	for key := range a {
		if string(a[key]) != string(b[key]) {
			return false
		}
	}
	return len(a) == len(b)
}

// A function that looked for its job and did not find it often returns NULL.
// Taken for a move, it would be a job that is nowhere.
func TestFunctionThatReturnsNullRefuses(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ returns string }{
		"NULL":              {`null::jsonb`},
		"null of jsonb":     {`'null'::jsonb`},
		"no row":            {`'{}'::jsonb where false`},
		"NULL of an object": {`'{"a": 1}'::jsonb -> 'b'`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for mode, answer := range returning(t, test.returns) {
				require.NoError(t, answer.err, mode)
				require.Len(t, answer.receipts, 1, mode)
				got := answer.receipts[0]
				require.Equal(t, answer.id, got.JobID, mode)
				require.True(t, got.Refused, mode)
				require.NotEmpty(t, got.Reason, mode)
			}
		})
	}
}

// A function that answers in another way than agreed may have moved the job or
// not. The apply must not guess.
func TestFunctionsOtherAnswersAreErrors(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ returns string }{
		"a list":             {`'[]'::jsonb`},
		"a list of objects":  {`'[{"refused": false}]'::jsonb`},
		"a string":           {`'"moved"'::jsonb`},
		"a number":           {`'1'::jsonb`},
		"true":               {`'true'::jsonb`},
		"refused as a word":  {`'{"refused": "true"}'::jsonb`},
		"refused as a digit": {`'{"refused": 1}'::jsonb`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for mode, answer := range returning(t, test.returns) {
				var typeErr *json.UnmarshalTypeError
				require.ErrorAs(t, answer.err, &typeErr, mode)
				require.Nil(t, answer.receipts, mode)
			}
		})
	}
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
