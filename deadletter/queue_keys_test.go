package deadletter_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
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
	reapertest.Exec(t, pool, `create schema "Odd ""Schema"""`)
	reapertest.Exec(t, pool, `create domain job_key as bigint check (value > 0)`)
	reapertest.Exec(t, pool, `create type job_enum as enum ('first', 'it''s', 'third')`)
	reapertest.Exec(t, pool, fmt.Sprintf(`create table "Odd ""Schema"""."work items" ("Id" %s primary key, "{job_id}" varchar(20), "tries $1" bigint, "max" smallint)`, key))
	reapertest.Exec(t, pool, fmt.Sprintf(`create table dead (dead_letter_id bigserial, job_id %s, job_kind text, attempts bigint, max_attempts integer,
			final_error text, moved_by text, moved_at timestamptz default now(), job jsonb)`, key))
	reapertest.Exec(t, pool, fmt.Sprintf(`create function fn_dead(%s, text, text) returns jsonb language sql
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
			for mode, pool := range reapertest.InEveryMode(t, pool) {
				tx := reapertest.Begin(t, pool)
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
				require.Equal(t, "0", reapertest.One[string](t, tx, `
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
			for mode, pool := range reapertest.InEveryMode(t, pool) {
				tx := reapertest.Begin(t, pool)
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

// A queue that was mapped has no column of the reference's names.
func TestRedriveOverAMappedQueue(t *testing.T) {
	t.Parallel()

	for name, test := range keyTests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Empty(t)
			store := createMapped(t, pool, test.key)
			for mode, pool := range reapertest.InEveryMode(t, pool) {
				for _, gone := range []bool{false, true} {
					buryMapped(t, pool, store, test, gone)
					result, err := deadletter.Redrive(t.Context(), pool, store, operator, deadletter.Filter{}, 100)
					require.NoError(t, err, mode)
					require.Empty(t, result.Failures, mode)
					require.Empty(t, result.Skipped, mode)
					require.ElementsMatch(t, test.ids, jobsOf(result), mode)
					require.Equal(t, gone, result.Redriven[0].Rebuilt)
					require.Equal(t, len(test.ids), reapertest.One[int](t, pool, `
select count(*) from "Odd ""Schema"""."work items"
where "the state" = 'it''s waiting' and "tries $1" = 0 and "next run" <= now() and who is null and until is null and mine = 'kept'`), mode)

					ids := result.Redriven[0].DeadLetterIDs
					result, err = deadletter.Redrive(t.Context(), pool, store, operator, deadletter.Filter{IDs: ids, JobIDs: test.ids}, 100)
					require.NoError(t, err, mode)
					require.Equal(t, deadletter.SkipRedriven, result.Skipped[0].Reason)
					purged, err := deadletter.Purge(t.Context(), pool, store, 0, deadletter.PurgeConfig{Batch: 1, Unredriven: true})
					require.NoError(t, err, mode)
					require.Equal(t, len(test.ids), purged.RedrivenCount)
				}
			}
		})
	}
}

// createMapped creates a queue that is quite unlike the reference's, with a key of
// a type and no last error.
func createMapped(t *testing.T, pool *pgxpool.Pool, key string) deadletter.Store {
	t.Helper()
	createItems(t, pool, key, nil)
	reapertest.Exec(t, pool, `
create type "the enum" as enum ('it''s waiting', 'DEAD', 'other');
alter table "Odd ""Schema"""."work items"
  add column "the state" "the enum" not null default 'DEAD', add column "next run" timestamptz not null default 'infinity',
  add column who text default 'a worker', add column until timestamptz default 'infinity', add column mine text not null default 'kept';
alter table dead add column redriven_at timestamptz, add column redriven_by text, add primary key (dead_letter_id)`)
	queue := items()
	queue.State, queue.RetryWaiting, queue.DeadLetter = "the state", "it's waiting", "DEAD"
	queue.ScheduledAt, queue.LeaseOwner, queue.LeaseUntil = "next run", "who", "until"
	return deadletter.Store{Table: deadletter.Table{Name: pgx.Identifier{"dead"}}, Queue: queue}
}

// buryMapped makes dead jobs of a mapped queue.
func buryMapped(t *testing.T, pool *pgxpool.Pool, store deadletter.Store, test keyTest, gone bool) {
	t.Helper()
	reapertest.Exec(t, pool, `truncate "Odd ""Schema"""."work items"`)
	for _, id := range test.ids {
		_, err := pool.Exec(t.Context(), `insert into "Odd ""Schema"""."work items" ("Id", "{job_id}", "tries $1", "max")
			values ($1::text::`+test.key+`, 'a kind', 4, 5)`, id)
		require.NoError(t, err)
	}
	tx := reapertest.Begin(t, pool)
	_, err := store.Table.Move(t.Context(), tx, claim(t, tx, store.Queue, test.ids))
	require.NoError(t, err)
	if gone {
		reapertest.Exec(t, tx, `delete from "Odd ""Schema"""."work items"`)
	}
	require.NoError(t, tx.Commit(t.Context()))
}

// A table of letters for several queues has ids that are texts. The letters of such a
// table could be stored, and neither redriven, once the queue's row was gone, nor purged.
func TestLettersWhoseIDsAreTexts(t *testing.T) {
	t.Parallel()

	for _, typeSQL := range []string{"text", "varchar(36)", "char(36)"} {
		t.Run(typeSQL, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			bury(t, pool, "there", "gone", "purged", "purged and gone")
			reapertest.Exec(t, pool, `alter table job_dead_letter alter job_id type `+typeSQL)
			reapertest.Exec(t, pool, `delete from job_queue where job_kind like '%gone'`)

			redriven := redriveAll(t, pool, deadletter.Filter{Kinds: []string{"there", "gone"}})
			purged := purgeAll(t, pool, 0, deadletter.PurgeConfig{Unredriven: true})

			require.Equal(t, 2, redriven.RedrivenCount)
			require.Equal(t, 4, purged.RedrivenCount+purged.UnredrivenCount)
			require.Equal(t, 1, purged.JobCount)
			require.Equal(t, []string{"gone", "there"}, reapertest.Column(t, pool, `select job_kind from job_queue order by 1`))
		})
	}
}
