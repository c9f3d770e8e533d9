package reaper_test

import (
	"math"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// beforeUpdate is a trigger on the queue that changes what is written.
func beforeUpdate(change string) string {
	return `create function change() returns trigger language plpgsql as $$ begin ` + change + `; return new; end $$;
		create trigger change before update on job_queue for each row when (new.job_kind = 'odd') execute function change()`
}

// Whoever schedules by the result would look for the job at another time than the
// worker's query does.
func TestTheResultHasTheTimeThatIsStored(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ sql string }{
		"the column holds whole seconds": {`alter table job_queue alter scheduled_at type timestamptz(0)`},
		"a trigger shifts it":            {beforeUpdate(`new.scheduled_at := new.scheduled_at + interval '1 hour'`)},
		"a trigger puts it off for good": {beforeUpdate(`new.scheduled_at := 'infinity'`)},
	}
	for name, test := range tests {
		for with, cfg := range map[string]reaper.Config{"": {}, ", with a hook": {OnApply: reapertest.NoHook}} {
			t.Run(name+with, func(t *testing.T) {
				t.Parallel()
				pool := reapertest.OpenQueue(t)
				reapertest.Exec(t, pool, test.sql)
				reapertest.Stale(t, pool, "odd", 3, 0, 5)

				for _, action := range reapertest.Apply(t, reapertest.New(t, pool, cfg), 10).Actions {
					stored := reapertest.One[string](t, pool, `select scheduled_at::text from job_queue where job_id = $1::uuid`, action.JobID)
					if stored == "infinity" {
						require.Equal(t, time.UnixMicro(math.MaxInt64).UTC(), action.ScheduledAt)
						continue
					}
					require.Equal(t, action.ScheduledAt, reapertest.One[time.Time](t, pool,
						`select scheduled_at from job_queue where job_id = $1::uuid`, action.JobID).UTC())
				}
			})
		}
	}
}

// A trigger that keeps the attempts lets a job that kills its workers live for ever,
// and one that cancels a job has not reset it.
func TestARowThatIsNotStoredAsWrittenIsAFailure(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ change string }{
		"a trigger keeps the attempts":     {`new.attempts := old.attempts`},
		"a trigger counts once more":       {`new.attempts := new.attempts + 1`},
		"a trigger cancels the job":        {`new.state := 'cancelled'`},
		"a trigger keeps the state":        {`new.state := old.state`},
		"a trigger has no time for it":     {`new.scheduled_at := null`},
		"a trigger keeps the row as it is": {`new := old`},
	}
	for name, test := range tests {
		for place, attempts := range map[string]int{"at its reset": 0, "at its move": 4} {
			for with, mover := range reapertest.Movers {
				t.Run(name+" "+place+" "+with, func(t *testing.T) {
					t.Parallel()
					pool := reapertest.WithOracle(t, reapertest.OpenQueue(t))
					reapertest.Exec(t, pool, `alter table job_queue alter scheduled_at drop not null`)
					reapertest.Exec(t, pool, beforeUpdate(test.change))
					reapertest.Stale(t, pool, "odd", 2, attempts, 5)
					reapertest.Stale(t, pool, "plain", 5, attempts, 5)
					before := reapertest.BadRows(t, pool, "odd")
					if name == "a trigger has no time for it" && attempts > 0 {
						return // a move writes no time
					}

					result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{DeadLetter: mover}), 10)

					require.Len(t, result.Actions, 5)
					reapertest.RequireFailures(t, pool, result, "odd", "", 2)
					require.Equal(t, before, reapertest.BadRows(t, pool, "odd"))
				})
			}
		}
	}
}

// A queue that counts attempts at the claim has jobs at 3 of 3, and may forbid 4.
func TestACheckOfTheAttemptsKeepsNoJobFromTheDeadLetters(t *testing.T) {
	t.Parallel()
	for with, mover := range reapertest.Movers {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.WithOracle(t, reapertest.OpenQueue(t))
			reapertest.Exec(t, pool, `alter table job_queue add check (attempts <= max_attempts)`)
			reapertest.Stale(t, pool, "used up", 3, 3, 3)
			reapertest.Stale(t, pool, "last attempt", 2, 2, 3)
			reapertest.Stale(t, pool, "retryable", 4, 0, 3)

			result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{DeadLetter: mover}), 100)

			require.Empty(t, result.Failures)
			require.Equal(t, 4, result.ResetCount)
			require.Equal(t, 5, result.DeadLetterCount)
			require.Equal(t, map[string]int{"dead_letter": 5, "retry_waiting": 4}, reapertest.States(t, pool))
			require.Equal(t, 5, reapertest.One[int](t, pool, `select count(*) from job_queue q join job_dead_letter d using (job_id)
				where q.attempts = 3 and d.attempts = 3 and d.job ->> 'attempts' = '3'`))
			for _, action := range result.Actions {
				require.Equal(t, reapertest.One[int](t, pool, `select attempts from job_queue where job_id = $1::uuid`, action.JobID), action.Attempts)
			}
		})
	}
}

// A smallint is full at 32767. With a larger maximum the job would be reset again and
// again, and a dry run must say what an apply does.
func TestAttemptsAtTheEdgeOfTheirTypeAreUsedUp(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `alter table job_queue alter attempts type smallint`)
	reapertest.Stale(t, pool, "kind", 1, math.MaxInt16, 100_000)
	r := reapertest.New(t, pool, reaper.Config{})

	dryRun, err := r.DryRun(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, reaper.WouldMove, dryRun.Jobs[0].WouldAction)
	require.Equal(t, 1, dryRun.MoveCount)
	result, err := r.ApplyPlan(t.Context(), reapertest.Actor, dryRun)

	require.NoError(t, err)
	require.Equal(t, 1, result.DeadLetterCount, result)
	require.Equal(t, math.MaxInt16, result.Actions[0].Attempts)
}

// A document of type jsonb cannot hold what a json column can. Whoever needs it keeps
// the documents as json or text.
func TestALetterHoldsWhatItsColumnCanHold(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"jsonb", "json", "text"} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, `alter table job_dead_letter alter job type `+column+` using job::`+column+`;
				alter table job_queue add raw json`)
			reapertest.Stale(t, pool, "plain", 2, 4, 5)
			reapertest.Stale(t, pool, "odd", 1, 4, 5)
			reapertest.Exec(t, pool, `update job_queue set raw = '{"a": "\u0000",  "n": 1e200000}' where job_kind = 'odd'`)

			result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10)

			if column == "jsonb" {
				require.Equal(t, 2, result.DeadLetterCount)
				require.Equal(t, 1, result.FailedCount)
				return
			}
			require.Equal(t, 3, result.DeadLetterCount, result.Failures)
			require.Contains(t, reapertest.One[string](t, pool, `select job::text from job_dead_letter where job_kind = 'odd'`),
				`"raw":{"a": "\u0000",  "n": 1e200000}`)
			require.Equal(t, 3, reapertest.One[int](t, pool, `select count(*) from job_dead_letter where job::text like '%"attempts":5%'`))
		})
	}
}

// Two updates of a row in one transaction fire the user's triggers twice, and have
// PostgreSQL check its foreign keys again.
func TestAMovedRowIsUpdatedOnce(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `create table touched (job_id uuid);
		create function touch() returns trigger language plpgsql as $$ begin insert into touched values (new.job_id); return new; end $$;
		create trigger touch after update on job_queue for each row execute function touch()`)
	reapertest.Stale(t, pool, "exhausted", 5, 4, 5)

	require.Equal(t, 5, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10).DeadLetterCount)

	require.Equal(t, 5, reapertest.One[int](t, pool, `select count(*) from touched`))
}
