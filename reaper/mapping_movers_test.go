package reaper_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// moverFunctions are functions for [deadletter.Function]: one that stores a letter and
// leaves the row to the reaper, and one that removes it.
const moverFunctions = `
create function bury(job {key}, actor text, final_error text) returns jsonb language plpgsql as $$
begin
	insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
	select job, 'by function', 0, 0, final_error, actor, to_jsonb(q) from {queue} q where q.{id} = job;
	return jsonb_build_object('job_id', job, 'attempts', 1);
end $$;
create function remove(job {key}, actor text, final_error text) returns jsonb language plpgsql as $$
begin
	perform bury(job, actor, final_error);
	delete from {queue} q where q.{id} = job;
	return jsonb_build_object('job_id', job);
end $$`

// openLetters is open with a dead-letter table for the library's keys, and the functions.
func (l library) openLetters(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := l.open(t)
	queue := l.config().Queue
	id := pgx.Identifier{queue.Columns.JobID}.Sanitize()
	key := reapertest.One[string](t, pool, `select format_type(atttypid, -1) from pg_attribute
		where attrelid = $1::text::regclass and attname = $2`, queue.Name.Sanitize(), queue.Columns.JobID)
	reapertest.Exec(t, pool, `alter table job_dead_letter alter job_kind drop not null, alter job_id type `+key+` using null`)
	reapertest.Exec(t, pool, strings.NewReplacer("{key}", key, "{queue}", queue.Name.Sanitize(), "{id}", id).Replace(moverFunctions))
	return pool
}

// dead is the status of moved jobs for a library whose own status asks for a letter with
// the attempts of the table's.
func (l library) dead() library {
	l.status = strings.Replace(l.status, "and d.attempts = 7 and d.max_attempts = 9", "", 1)
	return l
}

// Each mover works with each mapping, with a row that is rejected and without.
func TestLibrariesWithEveryMover(t *testing.T) {
	t.Parallel()
	insert := func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
		return deadletter.Table{}.Move(ctx, tx, batch)
	}
	movers := map[string]deadletter.Mover{
		"a table":    deadletter.Table{},
		"a function": deadletter.Function{Name: pgx.Identifier{"bury"}},
		"Go":         deadletter.MoverFunc(insert),
	}
	for name, library := range libraries {
		for what, mover := range movers {
			for _, bad := range []int{0, 1} {
				t.Run(name+", "+what+map[int]string{1: ", one rejected"}[bad], func(t *testing.T) {
					t.Parallel()
					library := library.dead()
					pool := library.openLetters(t)
					library.fill(t, pool)
					library.add(t, pool, "bad", bad, library.young, 20)
					library.add(t, pool, "bad", bad, library.spent, 30)
					library.reject(t, pool)
					cfg := library.config()
					cfg.DeadLetter = mover

					result := reapertest.Apply(t, reapertest.New(t, pool, cfg), 100)

					require.Equal(t, []int{3, 2, 2 * bad}, []int{result.ResetCount, result.DeadLetterCount, result.FailedCount})
					library.requireReaped(t, pool, bad)
					library.requireLetters(t, pool, result)
				})
			}
		}
	}
}

// requireLetters requires a letter of each moved job, which shows the row before the move
// with what the reap has counted.
func (l library) requireLetters(t *testing.T, pool *pgxpool.Pool, result *reaper.ApplyResult) {
	t.Helper()
	c := l.config().Queue.Columns
	counter, counted := c.Attempts, l.moved
	if c.LostLeases != "" {
		counter, counted = c.LostLeases, 3
	}
	if counter == "" {
		counter = "attempts"
	}
	require.Equal(t, 2, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter
		where (job ->> $1)::int = $2 and job ->> $3 is not null and final_error = 'lease_expired_reaped_at_max_attempts'`,
		counter, counted, c.LeaseUntil))
	for _, action := range result.Actions {
		if action.Action == reaper.ActionMoved {
			require.Equal(t, 1, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter where job_id::text = $1`, action.JobID))
			require.Equal(t, l.moved, action.Attempts)
		}
	}
}

// A mover may remove the row. Then a queue without states needs no mark, and its dead jobs
// come back from their letters.
func TestLibrariesWithAMoverThatRemovesTheRow(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.openLetters(t)
			library.fill(t, pool)
			cfg := library.config()
			cfg.DeadLetter = deadletter.Function{Name: pgx.Identifier{"remove"}}
			cfg.Queue.OnMove = nil

			result := reapertest.Apply(t, reapertest.New(t, pool, cfg), 100)

			require.Equal(t, []int{3, 2, 0}, []int{result.ResetCount, result.DeadLetterCount, result.FailedCount})
			require.Equal(t, map[string]int{"young reset": 3, "live leased": 2}, library.seen(t, pool))
			library.requireLetters(t, pool, result)
			store := deadletter.Store{Queue: cfg.Queue.DeadLetterQueue()}
			redriven, err := deadletter.Redrive(t.Context(), pool, store, "operator", deadletter.Filter{}, 10)
			require.NoError(t, err)
			require.Equal(t, 2, redriven.RedrivenCount, redriven)
			require.True(t, redriven.Redriven[0].Rebuilt)
			if name != "pg-boss" { // its status asks for what OnMove writes
				require.Equal(t, map[string]int{"young reset": 3, "spent new": 2, "live leased": 2}, library.redriven(t, pool))
			}
		})
	}
}

// A mover that neither removes the row nor marks it would leave a job that is dead and
// leased. The move is undone.
func TestAMoverThatLeavesTheRowOfAQueueWithoutStates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"delayed_job", "graphile-worker"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries[name]
			pool := library.openLetters(t)
			library.fill(t, pool)
			cfg := library.config()
			cfg.DeadLetter = deadletter.Function{Name: pgx.Identifier{"bury"}}
			cfg.Queue.OnMove = nil

			result := reapertest.Apply(t, reapertest.New(t, pool, cfg), 100)

			require.Equal(t, []int{3, 0, 2}, []int{result.ResetCount, result.DeadLetterCount, result.FailedCount})
			require.Equal(t, map[string]int{"young reset": 3, "spent leased": 2, "live leased": 2}, library.seen(t, pool))
			require.Zero(t, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter`))
		})
	}
}

// A function may close the row itself, as its library does. The reaper then leaves it so.
func TestAMoverThatClosesTheRowOfAQueueWithoutStates(t *testing.T) {
	t.Parallel()
	for name, marks := range map[string]bool{"that the reaper would mark": true, "that nothing else marks": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries["delayed_job"]
			pool := library.open(t)
			library.fill(t, pool)
			reapertest.Exec(t, pool, `create function fail(job bigint, actor text, final_error text) returns jsonb language sql as $$
				update jobs set failed_at = now() at time zone 'utc', locked_at = null, last_error = 'its own' where id = job
				returning jsonb_build_object('job_id', job) $$`)
			cfg := library.config()
			cfg.DeadLetter = deadletter.Function{Name: pgx.Identifier{"fail"}}
			if !marks {
				cfg.Queue.OnMove = nil
			}

			result := reapertest.Apply(t, reapertest.New(t, pool, cfg), 100)

			require.Equal(t, []int{3, 2, 0}, []int{result.ResetCount, result.DeadLetterCount, result.FailedCount})
			library.requireReaped(t, pool, 0)
			require.Equal(t, 2, reapertest.One[int](t, pool, `select count(*)::int from jobs where last_error = 'its own' and attempts = 25`))
		})
	}
}
