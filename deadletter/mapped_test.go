package deadletter_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// A queue that was mapped has no column of the reference's names.
func TestRedriveOverAMappedQueue(t *testing.T) {
	t.Parallel()

	for name, test := range keyTests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Empty(t)
			store := createMapped(t, pool, test.key)
			for mode, pool := range inEveryMode(t, pool) {
				for _, gone := range []bool{false, true} {
					buryMapped(t, pool, store, test, gone)
					result, err := deadletter.Redrive(t.Context(), pool, store, operator, deadletter.Filter{}, 100)
					require.NoError(t, err, mode)
					require.Empty(t, result.Failures, mode)
					require.Empty(t, result.Skipped, mode)
					require.ElementsMatch(t, test.ids, jobsOf(result), mode)
					require.Equal(t, gone, result.Redriven[0].Rebuilt)
					require.Equal(t, len(test.ids), one[int](t, pool, `
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
	execute(t, pool, `
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
	execute(t, pool, `truncate "Odd ""Schema"""."work items"`)
	for _, id := range test.ids {
		_, err := pool.Exec(t.Context(), `insert into "Odd ""Schema"""."work items" ("Id", "{job_id}", "tries $1", "max")
			values ($1::text::`+test.key+`, 'a kind', 4, 5)`, id)
		require.NoError(t, err)
	}
	tx := begin(t, pool)
	_, err := store.Table.Move(t.Context(), tx, claim(t, tx, store.Queue, test.ids))
	require.NoError(t, err)
	if gone {
		execute(t, tx, `delete from "Odd ""Schema"""."work items"`)
	}
	require.NoError(t, tx.Commit(t.Context()))
}
