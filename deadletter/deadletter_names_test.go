package deadletter_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// oddNames returns names that a careless quoting, or a second search of a
// statement for its placeholders, trips over.
func oddNames() map[string]pgx.Identifier {
	return map[string]pgx.Identifier{
		"quotes in a schema of its own": {"Odd-Schema", `de"ad`},
		"dots in both parts":            {"a.b", "c.d"},
		"an injection":                  {`x"; drop schema "a.b"; --`},
		"its own placeholder":           {"{dead_letter}{function}"},
		"the queue's placeholders":      {"{queue}{job_id}{attempts}"},
		"parameters":                    {"$1$2$3"},
		"a comment":                     {"-- /* it's"},
		"a keyword":                     {"select"},
		"a line break":                  {"a\nb"},
		"a backslash":                   {`a\'b`},
	}
}

const oddSchemas = `create schema "Odd-Schema"; create schema "a.b"`

// Names come from configuration and end up in SQL. An odd one must find its
// table, and none may become more than a name.
func TestTableFindsOddNames(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, oddSchemas)
	pools := reapertest.InEveryMode(t, pool)

	for name, id := range oddNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mover := deadletter.Table{Name: id}
			require.NoError(t, mover.Validate())
			reapertest.Exec(t, pool, `create table `+id.Sanitize()+` (like job_dead_letter including all)`)
			for mode, pool := range pools {
				tx := reapertest.Begin(t, pool)
				batch := claim(t, tx, reference(), enqueue(t, pool, "invoice"))
				receipts, err := mover.Move(t.Context(), tx, batch)
				require.NoError(t, err, mode)
				require.Len(t, receipts, 1, mode)
				require.False(t, receipts[0].Refused, mode)
				require.Equal(t, batch.Jobs[0].ID, reapertest.One[string](t, tx, `select job_id::text from `+id.Sanitize()), mode)
				require.NoError(t, tx.Rollback(t.Context()))
			}
		})
	}
}

// The same for a function.
func TestFunctionFindsOddNames(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, oddSchemas)
	pools := reapertest.InEveryMode(t, pool)

	for name, id := range oddNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mover := deadletter.Function{Name: id}
			require.NoError(t, mover.Validate())
			reapertest.Exec(t, pool, `create function `+id.Sanitize()+`(uuid, text, text) returns jsonb language sql
				as 'select jsonb_build_object(''job'', $1, ''actor'', $2, ''error'', $3)'`)
			for mode, pool := range pools {
				tx := reapertest.Begin(t, pool)
				batch := claim(t, tx, reference(), enqueue(t, pool, "invoice"))
				receipts, err := mover.Move(t.Context(), tx, batch)
				require.NoError(t, err, mode)
				require.Len(t, receipts, 1, mode)
				require.Equal(t, asked{Job: batch.Jobs[0].ID, Actor: actor, Error: finalError}, decode[asked](t, receipts[0]), mode)
				require.NoError(t, tx.Rollback(t.Context()))
			}
		})
	}
}

// A name that nothing can have is cut short or misread by the server, and then
// another table takes the jobs. It is caught before the first statement.
func TestMoversRefuseImpossibleNames(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ name pgx.Identifier }{
		"an empty part":           {pgx.Identifier{""}},
		"an empty schema":         {pgx.Identifier{"", "dead"}},
		"three parts":             {pgx.Identifier{"db", "ops", "dead"}},
		"a NUL":                   {pgx.Identifier{"de\x00ad"}},
		"not UTF-8":               {pgx.Identifier{"dead\xff"}},
		"a byte too long":         {pgx.Identifier{strings.Repeat("x", 64)}},
		"long in its second part": {pgx.Identifier{"ops", strings.Repeat("é", 32)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, function := deadletter.Table{Name: test.name}, deadletter.Function{Name: test.name}
			require.ErrorIs(t, table.Validate(), pgtext.ErrName)
			require.ErrorIs(t, function.Validate(), pgtext.ErrName)
			for _, mover := range []deadletter.Mover{table, function} {
				receipts, err := mover.Move(t.Context(), nil, deadletter.Batch{Jobs: []deadletter.Job{{ID: "1"}}})
				require.ErrorIs(t, err, pgtext.ErrName)
				require.Nil(t, receipts)
			}
		})
	}
	require.NoError(t, deadletter.Table{}.Validate(), "no name is the default")
	require.NoError(t, deadletter.Function{}.Validate(), "no name is the default")
}
