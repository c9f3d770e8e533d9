package deadletter_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// items returns the names of a queue that is quite unlike the reference's.
func items() deadletter.Queue {
	return deadletter.Queue{
		Table: pgx.Identifier{`Odd "Schema"`, "work items"},
		JobID: "Id", JobKind: "{job_id}", Attempts: "tries $1", MaxAttempts: "max",
	}
}

// createItems creates that queue, with a key of a type, a table for its dead and
// a function for them.
func createItems(t *testing.T, pool *pgxpool.Pool, key string, ids []string) {
	t.Helper()
	execute(t, pool,
		`create schema "Odd ""Schema"""`,
		`create domain job_key as bigint check (value > 0)`,
		`create type job_enum as enum ('first', 'it''s', 'third')`,
		fmt.Sprintf(`create table "Odd ""Schema"""."work items" ("Id" %s primary key, "{job_id}" varchar(20), "tries $1" bigint, "max" smallint)`, key),
		fmt.Sprintf(`create table dead (dead_letter_id bigserial, job_id %s, job_kind text, attempts bigint, max_attempts integer,
			final_error text, moved_by text, moved_at timestamptz default now(), job jsonb)`, key),
		fmt.Sprintf(`create function fn_dead(%s, text, text) returns jsonb language sql
			as 'select jsonb_build_object(''job'', $1::text, ''actor'', $2, ''error'', $3)'`, key))
	for _, id := range ids {
		_, err := pool.Exec(t.Context(), fmt.Sprintf(`insert into "Odd ""Schema"""."work items" values ($1::text::%s, 'a kind', 4, 5)`, key), id)
		require.NoError(t, err)
	}
}

type keyTest struct {
	key string // its type
	ids []string
}

func keyTests() map[string]keyTest {
	return map[string]keyTest{
		"bigint":   {"bigint", []string{"9223372036854775807", "-1", "0", "42"}},
		"integer":  {"integer", []string{"2147483647", "7"}},
		"smallint": {"smallint", []string{"32767", "-7"}},
		"numeric":  {"numeric", []string{"9007199254740993.5", "1.10"}},
		"uuid":     {"uuid", []string{"00000000-0000-4000-8000-00000000000a", "ffffffff-ffff-4fff-bfff-ffffffffffff"}},
		"varchar":  {"varchar(60)", []string{"b", "a"}},
		"an enum":  {"job_enum", []string{"it's", "first"}},
		"a domain": {"job_key", []string{"9", "8"}},
		"text": {"text", []string{
			"plain", "", " ", "NULL", "null", "a,b", "{}", `{"a"}`, `"`, `\`, `it's`, `\'; drop table items; --`, "$1", "line\nbreak",
			"☃", "<&>\u2028", "\x01",
		}},
	}
}

// Queues have keys of many types, and connections run queries in many ways. A
// key that is written or compared otherwise than the server does it is a job
// that cannot die.
func TestTableTakesKeysOfAnyType(t *testing.T) {
	t.Parallel()

	for name, test := range keyTests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Empty(t)
			createItems(t, pool, test.key, test.ids)
			for mode, pool := range inEveryMode(t, pool) {
				tx := begin(t, pool)
				mover := deadletter.Table{Name: pgx.Identifier{"dead"}}
				receipts, err := mover.Move(t.Context(), tx, claim(t, tx, items(), test.ids))
				require.NoError(t, err, mode)
				require.Len(t, receipts, len(test.ids), mode)
				for i, receipt := range receipts {
					require.Equal(t, test.ids[i], receipt.JobID, mode)
					require.False(t, receipt.Refused, mode)
					require.Equal(t, test.ids[i], decode[struct {
						JobID string `json:"job_id"`
					}](t, receipt).JobID, mode)
				}
				require.Equal(t, "0", value(t, tx, `
select count(*)::text
from "Odd ""Schema"""."work items" q full join dead d on d.job_id = q."Id"
where (d.job_kind, d.attempts, d.max_attempts, d.final_error, d.moved_by, d.job)
is distinct from ('a kind'::text, 5::bigint, 5, $1::text, $2::text, to_jsonb(q))`, finalError, actor), mode)
				require.NoError(t, tx.Rollback(t.Context()))
			}
		})
	}
}

// The same for a function, which is found by its parameters' types.
func TestFunctionTakesKeysOfAnyType(t *testing.T) {
	t.Parallel()

	for name, test := range keyTests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Empty(t)
			createItems(t, pool, test.key, test.ids)
			for mode, pool := range inEveryMode(t, pool) {
				tx := begin(t, pool)
				mover := deadletter.Function{Name: pgx.Identifier{"fn_dead"}}
				receipts, err := mover.Move(t.Context(), tx, claim(t, tx, items(), test.ids))
				require.NoError(t, err, mode)
				require.Len(t, receipts, len(test.ids), mode)
				for i, receipt := range receipts {
					require.Equal(t, test.ids[i], receipt.JobID, mode)
					require.Equal(t, asked{test.ids[i], actor, finalError}, decode[asked](t, receipt), mode)
				}
				require.NoError(t, tx.Rollback(t.Context()))
			}
		})
	}
}
