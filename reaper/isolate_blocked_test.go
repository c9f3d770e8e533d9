package reaper_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// unavailable is a mover whose bucket cannot be reached.
var unavailable = deadletter.MoverFunc(func(context.Context, pgx.Tx, deadletter.Batch) ([]deadletter.Receipt, error) {
	return nil, fmt.Errorf("the bucket: %w", deadletter.ErrUnavailable)
})

// broken are the ways in which no job at all can be moved, for a reason that is no
// job's.
var broken = map[string]struct {
	sql      string
	cfg      reaper.Config
	sqlState string
}{
	"the dead letters are missing":      {sql: `drop table job_dead_letter`, sqlState: "42P01"},
	"a dead letter's column is missing": {sql: `alter table job_dead_letter drop column moved_by`, sqlState: "42703"},
	"the role may not insert":           {sql: `revoke insert on job_dead_letter from %`, sqlState: "42501"},
	"the disk of the dead letters is full": {sql: `create function full_disk() returns trigger language plpgsql as
		$$ begin raise 'no space' using errcode = '53100'; end $$;
		create trigger full_disk before insert on job_dead_letter for each row execute function full_disk()`, sqlState: "53100"},
	"the function is missing":              {cfg: reaper.Config{DeadLetter: deadletter.Function{}}, sqlState: "42883"},
	"the mover is unavailable":             {cfg: reaper.Config{DeadLetter: unavailable}},
	"the server of the mover is starting":  {cfg: reaper.Config{DeadLetter: starting}, sqlState: "57P03"},
	"the server of the mover is read-only": {cfg: reaper.Config{DeadLetter: guardedDisk}, sqlState: "25006"},
}

// starting and guardedDisk are movers that write to a server of their own.
var (
	starting    = elsewhere(&pgconn.PgError{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P03", Message: "starting up"})
	guardedDisk = elsewhere(&pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "25006", Message: "read-only"})
)

func elsewhere(err error) deadletter.Mover {
	return deadletter.MoverFunc(func(context.Context, pgx.Tx, deadletter.Batch) ([]deadletter.Receipt, error) {
		return nil, fmt.Errorf("%w: %w", deadletter.ErrUnavailable, err)
	})
}

// asRoleWith is a pool of a role that may do everything but what the breakage takes
// from it.
func asRoleWith(t *testing.T, pool *pgxpool.Pool, breakage string) *pgxpool.Pool {
	t.Helper()
	role := reapertest.One[string](t, pool, `select 'user_' || md5(current_database())`)
	reapertest.Exec(t, pool, `create role `+role)
	t.Cleanup(func() { reapertest.DropRole(t, pool, role) })
	reapertest.Exec(t, pool, `grant select, insert, update on all tables in schema public to `+role)
	reapertest.Exec(t, pool, strings.ReplaceAll(breakage, "%", role))
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = role })
}

// The dead-letter table is dropped, or a privilege was forgotten: one exhausted job
// would keep five hundred others in the queue, for ever.
func TestResetsDoNotDependOnTheDeadLetters(t *testing.T) {
	t.Parallel()
	for name, test := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "retryable", 50, 0, 5)
			reapertest.Stale(t, pool, "exhausted", 3, 4, 5)

			result := reapertest.Apply(t, reapertest.New(t, asRoleWith(t, pool, test.sql), test.cfg), 100)

			require.Equal(t, 50, result.ResetCount)
			require.Zero(t, result.DeadLetterCount)
			reapertest.RequireFailures(t, pool, result, "exhausted", test.sqlState, 3)
			require.Equal(t, map[string]int{"retry_waiting": 50, "leased": 3}, reapertest.States(t, pool))
			require.Equal(t, 4*3, reapertest.One[int](t, pool, `select sum(attempts)::int from job_queue where job_kind = 'exhausted'`))
		})
	}
}

// With nothing to reset there is nothing to be glad of: the operator must see an
// error, and the next call must find everything as it was.
func TestNothingButMovesIsTheError(t *testing.T) {
	t.Parallel()
	for name, test := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "exhausted", 4, 4, 5)

			_, err := reapertest.New(t, asRoleWith(t, pool, test.sql), test.cfg).Apply(t.Context(), reapertest.Actor, 100)

			if test.sqlState == "" {
				require.ErrorIs(t, err, deadletter.ErrUnavailable)
			} else {
				var pgErr *pgconn.PgError
				require.ErrorAs(t, err, &pgErr)
				require.Equal(t, test.sqlState, pgErr.Code)
			}
			require.Equal(t, map[string]int{"leased": 4}, reapertest.States(t, pool))
			require.Equal(t, 16, reapertest.One[int](t, pool, `select sum(attempts)::int from job_queue`))
		})
	}
}

// The oldest leases are all of exhausted jobs. What lies after them must not wait
// until somebody repairs the dead letters.
func TestMovesThatAreBlockedHideNothing(t *testing.T) {
	t.Parallel()
	for name, test := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "retryable", 20, 0, 5)
			reapertest.Stale(t, pool, "exhausted", 20, 4, 5)
			reapertest.Exec(t, pool, `update job_queue set lease_until = lease_until - interval '1 day' where job_kind = 'exhausted'`)
			r := reapertest.New(t, asRoleWith(t, pool, test.sql), test.cfg)

			result := reapertest.Apply(t, r, 10)
			require.Equal(t, 10, result.ResetCount)
			require.Equal(t, 20, result.FailedCount)

			drained, err := r.Drain(t.Context(), reapertest.Actor, 10)
			require.Error(t, err)
			require.Equal(t, 10, drained.ResetCount)
			require.Equal(t, map[string]int{"retry_waiting": 20, "leased": 20}, reapertest.States(t, pool))
		})
	}
}

// A trigger that rejects every letter rejects rows, as ever: it may let the next one
// pass.
func TestATriggerThatRejectsEveryLetterRejectsRows(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `create function reject() returns trigger language plpgsql as
		$$ begin raise 'no letters today' using errcode = 'LR002'; end $$;
		create trigger reject before insert on job_dead_letter for each row execute function reject()`)
	reapertest.Stale(t, pool, "exhausted", 4, 4, 5)

	result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 100)

	reapertest.RequireFailures(t, pool, result, "exhausted", "LR002", 4)
}

// Two old jobs that are always rejected are at the head of the queue. Whoever calls
// Apply with a small limit would never reach the others.
func TestRejectedJobsHideNothing(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		rejected, limit, reaped, failed int
		more                            bool
	}{
		"one batch of them":          {rejected: 2, limit: 2, reaped: 2, failed: 2, more: true},
		"nine batches of them":       {rejected: 18, limit: 2, reaped: 2, failed: 18, more: true},
		"ten batches of them":        {rejected: 20, limit: 2, reaped: 0, failed: 20, more: true},
		"a part of a batch":          {rejected: 3, limit: 2, reaped: 1, failed: 3, more: true},
		"fewer than the batch holds": {rejected: 3, limit: 20, reaped: 5, failed: 3, more: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
			reapertest.Stale(t, pool, "good", 5, 0, 5)
			reapertest.Stale(t, pool, "check", test.rejected, 0, 5)
			reapertest.Exec(t, pool, `update job_queue set lease_until = lease_until - interval '1 day' where job_kind = 'check'`)

			result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), test.limit)

			require.Equal(t, test.reaped, result.ResetCount)
			reapertest.RequireFailures(t, pool, result, "check", "23514", test.failed)
			require.Equal(t, test.more, result.More)
		})
	}
}

// A caller that asks for a hundred must know whether to ask again.
func TestMoreSaysThatTheLimitWasReached(t *testing.T) {
	t.Parallel()
	for limit, more := range map[int]bool{4: true, 5: true, 6: false} {
		pool := reapertest.OpenQueue(t)
		reapertest.Stale(t, pool, "kind", 5, 0, 5)
		require.Equal(t, more, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), limit).More, limit)
	}
}

// How many jobs an operator is about to lose is not seen in a list of ten.
func TestADryRunCountsTheMoves(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "retryable", 30, 0, 5)
	reapertest.Stale(t, pool, "exhausted", 20, 4, 5)
	reapertest.Exec(t, pool, `update job_queue set lease_until = lease_until - interval '1 day' where job_kind = 'exhausted'`)

	for countUpTo, want := range map[int]int{0: 20, 1000: 20, 7: 7} {
		result, err := reapertest.New(t, pool, reaper.Config{CountUpTo: countUpTo}).DryRun(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, want, result.MoveCount, countUpTo)
		require.NotContains(t, reapertest.JSON(t, result), "move_count")
	}
}

// A wait that is long for a test, and short for a person.
const lockTimeout = 200 * time.Millisecond

// tenants has the queue refer to rows of another table at each update.
const tenants = `create table tenant (id int primary key); insert into tenant values (1), (2);
	alter table job_queue add tenant int references tenant default 1;
	update job_queue set tenant = 2 where job_kind = 'locked';
	create function touch() returns trigger language plpgsql as
		$$ begin perform 1 from tenant where id = new.tenant for key share; return new; end $$;
	create trigger touch before update on job_queue for each row execute function touch()`

// Somebody's open transaction holds what a few jobs need. The others have nothing to
// do with it, and no gate can be closed while the apply waits.
func TestAForeignLockHoldsUpItsOwnJobsAlone(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		prepare, hold string
		free, locked  int
	}{
		"a unique key that an open insert has taken": {
			prepare: `create unique index on job_queue ((payload ->> 'slot')) where state = 'retry_waiting';
				update job_queue set payload = jsonb_build_object('slot', job_id)`,
			hold: `insert into job_queue (job_kind, state, payload)
				select 'other', 'retry_waiting', payload from job_queue where job_kind = 'locked'`,
			free: 100, locked: 1,
		},
		"a unique key, and no other job": {
			prepare: `create unique index on job_queue ((0)) where state = 'retry_waiting'`,
			hold:    `insert into job_queue (job_kind, state) values ('other', 'retry_waiting')`,
			locked:  1,
		},
		"a unique key of every job": {
			prepare: `create unique index on job_queue ((0)) where state = 'retry_waiting'`,
			hold:    `insert into job_queue (job_kind, state) values ('other', 'retry_waiting')`,
			locked:  60,
		},
		"a parent row of the only job": {
			prepare: tenants,
			hold:    `select from tenant where id = 2 for update`,
			locked:  1,
		},
		"a parent row of nearly every job": {
			prepare: tenants,
			hold:    `select from tenant where id = 2 for update`,
			free:    2, locked: 60,
		},
		"a parent row, locked by its owner": {
			prepare: tenants,
			hold:    `select from tenant where id = 2 for update`,
			free:    100, locked: 1,
		},
	}
	for name, test := range tests {
		for place, attempts := range map[string]int{"at the reset": 0, "at the move": 4} {
			if attempts > 0 && strings.Contains(test.prepare, "retry_waiting") {
				continue // that key is of no moved job
			}
			t.Run(name+" "+place, func(t *testing.T) {
				t.Parallel()
				pool := reapertest.OpenQueue(t)
				reapertest.Stale(t, pool, "free", test.free, attempts, 5)
				reapertest.Stale(t, pool, "locked", test.locked, attempts, 5)
				reapertest.Exec(t, pool, test.prepare)
				holder := reapertest.Begin(t, pool)
				reapertest.Exec(t, holder, test.hold)

				began := time.Now()
				result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{LockTimeout: lockTimeout}), 1000)

				require.Len(t, result.Actions, test.free)
				reapertest.RequireFailures(t, pool, result, "locked", "55P03", test.locked)
				require.Less(t, time.Since(began), reapertest.Waiting)
			})
		}
	}
}

// A loop that takes the lock of a row for an outage waits for the workers each time it
// meets that row, and every other job waits with it.
func TestALockedRowIsNoOutage(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `create unique index on job_queue ((0)) where state = 'retry_waiting' and job_kind = 'locked'`)
	reapertest.Stale(t, pool, "locked", 1, 0, 5)
	holder := reapertest.Begin(t, pool)
	reapertest.Exec(t, holder, `insert into job_queue (job_kind, state) values ('locked', 'retry_waiting')`)
	log := &reapertest.Logbook{}

	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger(), LockTimeout: 10 * time.Millisecond}), reaper.RunConfig{
		Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: 1,
	})

	require.Eventually(t, func() bool { return log.Count("jobs rejected") == 1 }, reapertest.Waiting, reapertest.Tick)
	reapertest.Stale(t, pool, "free", 3, 0, 5)
	require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == 3 }, reapertest.Waiting, reapertest.Tick)
	require.Zero(t, log.Count(reapertest.Renewing))
	require.Zero(t, log.Count("pass failed"))
	require.NoError(t, holder.Rollback(t.Context()))
	require.Eventually(t, func() bool { return reapertest.States(t, pool)["retry_waiting"] == 4 }, reapertest.Waiting, reapertest.Tick)
}

// An index is being made on the partition that holds the leases. No worker can renew, so
// that is no job's failure.
func TestALockOnAPartitionIsTheApplysError(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `alter table job_queue rename to template;
		create table job_queue (like template including defaults) partition by list (job_kind);
		create table locked_jobs partition of job_queue for values in ('locked');
		create table other_jobs partition of job_queue default`)
	reapertest.Stale(t, pool, "locked", 3, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{LockTimeout: 10 * time.Millisecond})
	holder := reapertest.Begin(t, pool)
	reapertest.Exec(t, holder, `lock table locked_jobs in share mode`)

	_, err := r.Apply(t.Context(), reapertest.Actor, 10)

	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "55P03", pgErr.Code)
	require.NoError(t, holder.Rollback(t.Context()))
	require.Len(t, reapertest.Apply(t, r, 10).Actions, 3)
}
