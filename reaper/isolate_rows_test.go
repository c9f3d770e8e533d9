package reaper_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A policy, or a trigger that looks for what one kind does not have, answers with
// an error that is otherwise nobody's fault. As the oldest lease, that one job
// would keep all others from being reaped for good.
func TestAnErrorOfAnyClassMayBeARows(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ sql, sqlState string }{
		"a policy on the queue": {`alter table job_queue enable row level security;
			create policy look on job_queue for select using (true);
			create policy write on job_queue for update using (true) with check (job_kind <> 'bad' or state = 'leased')`, "42501"},
		"a table that one kind does not have": {`create table audit_good (id uuid);
			create function audit() returns trigger language plpgsql as $$ begin
				execute format('insert into audit_%s values ($1)', new.job_kind) using new.job_id; return new; end $$;
			create trigger audit before update on job_queue for each row execute function audit()`, "42P01"},
		"a trigger that raises 55000":         {raiseForBad("55000"), "55000"},
		"a trigger that raises 57014":         {raiseForBad("57014"), "57014"},
		"a trigger that raises 0A000":         {raiseForBad("0A000"), "0A000"},
		"a trigger that raises XX000":         {raiseForBad("XX000"), "XX000"},
		"a trigger that raises 40001, always": {raiseForBad("40001"), "40001"},
	}
	for name, test := range tests {
		for place, attempts := range map[string]int{"at its reset": 0, "at its move": 4} {
			t.Run(name+" "+place, func(t *testing.T) {
				t.Parallel()
				pool, asRole, _ := reapertest.LeastPrivileged(t)
				reapertest.Stale(t, pool, "good", 20, 0, 5)
				reapertest.Stale(t, pool, "good", 20, 4, 5)
				reapertest.Stale(t, pool, "bad", 1, attempts, 5)
				reapertest.Exec(t, pool, `update job_queue set lease_until = lease_until - interval '1 hour' where job_kind = 'bad'`)
				reapertest.Exec(t, pool, test.sql)
				reapertest.Exec(t, pool, `grant all on all tables in schema public to public`)

				result := reapertest.Apply(t, reapertest.New(t, asRole, reaper.Config{}), 100)

				require.Equal(t, 20, result.ResetCount)
				require.Equal(t, 20, result.DeadLetterCount)
				reapertest.RequireFailures(t, pool, result, "bad", test.sqlState, 1)
			})
		}
	}
}

func raiseForBad(sqlState string) string {
	return `create function refuse() returns trigger language plpgsql as
			$$ begin raise 'not this one' using errcode = '` + sqlState + `'; end $$;
		create trigger refuse before update on job_queue for each row
			when (new.job_kind = 'bad') execute function refuse()`
}

// A bad row must not change when the other constraints speak: a hook writes the
// child before the parent, or the very row that a deferred trigger asks for.
func TestDeferredConstraintsWaitForTheHook(t *testing.T) {
	t.Parallel()

	tests := map[string]string{
		"the hook's own rows": `create table parent (id int primary key);
			create table child (id int references parent deferrable initially deferred)`,
		"a trigger that asks for the hook's rows": `create table parent (id int); create table child (id int);
			create function ask() returns trigger language plpgsql as $$ begin
				if not exists (select from child) then raise 'no audit' using errcode = '23514'; end if; return null; end $$;
			create constraint trigger ask after update on job_queue deferrable initially deferred
				for each row execute function ask()`,
	}
	for name, sql := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
			reapertest.Stale(t, pool, "good", 3, 0, 5)
			reapertest.Stale(t, pool, "check", 1, 0, 5)
			reapertest.Exec(t, pool, sql)
			r := reapertest.New(t, pool, reaper.Config{OnApply: func(ctx context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error {
				_, err := tx.Exec(ctx, `insert into child values (1); insert into parent values (1)`)
				return err
			}})

			result := reapertest.Apply(t, r, 10)

			require.Equal(t, 3, result.ResetCount)
			reapertest.RequireFailures(t, pool, result, "check", "23514", 1)
		})
	}
}

// A queue whose ids are unique only together with a tenant: the other tenant's
// job is running, and must not be closed with its namesake.
func TestALiveJobOfTheSameIDIsNotClosed(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `alter table job_queue drop constraint job_queue_pkey`)
	reapertest.Stale(t, pool, "stale", 1, 4, 5)
	reapertest.Exec(t, pool, `insert into job_queue (job_id, job_kind, state, attempts, lease_owner, lease_until)
		select job_id, 'live', 'leased', 4, 'busy', now() + interval '1 hour' from job_queue`)
	before := reapertest.BadRows(t, pool, "live")

	require.Equal(t, 1, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10).DeadLetterCount)
	require.Equal(t, before, reapertest.BadRows(t, pool, "live"))
}

// A table without a key may hold two stale jobs of one id. Each must get what it is
// owed and not what the other is. A job without an id is counted, as the reference
// counts it, and cannot be named.
func TestStaleJobsOfOneIDAreToldApart(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `alter table job_queue drop constraint job_queue_pkey, alter job_id drop not null`)
	reapertest.Stale(t, pool, "good", 3, 0, 5)
	reapertest.Stale(t, pool, "twin", 1, 0, 5)
	reapertest.Exec(t, pool, `insert into job_queue (job_id, job_kind, state, attempts, lease_until)
		select job_id, 'twin', 'leased', 4, lease_until from job_queue where job_kind = 'twin'`)
	reapertest.Exec(t, pool, `insert into job_queue (job_id, job_kind, state, lease_until) values (null, 'nobody', 'leased', '-infinity')`)
	r := reapertest.New(t, pool, reaper.Config{})

	dryRun, err := r.DryRun(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 6, dryRun.StaleLeaseCount)
	require.Len(t, dryRun.Jobs, 5)
	result := reapertest.Apply(t, r, 10)

	require.Equal(t, 4, result.ResetCount)
	require.Equal(t, 1, result.DeadLetterCount)
	require.Equal(t, []string{"dead_letter 5", "retry_waiting 1"}, reapertest.One[[]string](t, pool,
		`select array_agg(state || ' ' || attempts order by state) from job_queue where job_kind = 'twin'`))
}

// Two stale jobs share an id, and a batch claims one of them. A mover in Go is told the
// id, and its job is closed by it. The other was not moved, and must not be lost.
func TestAStaleJobOfTheSameIDIsNotClosedUnmoved(t *testing.T) {
	t.Parallel()
	for _, attempts := range []int{4, 5} { // of the other; the bumped ones of the first are 5
		pool := reapertest.OpenQueue(t)
		reapertest.Exec(t, pool, `alter table job_queue drop constraint job_queue_pkey`)
		reapertest.Stale(t, pool, "first", 1, 4, 5)
		reapertest.Exec(t, pool, `insert into job_queue (job_id, job_kind, state, attempts, lease_owner, lease_until)
			select job_id, 'second', 'leased', $1, 'worker', lease_until + interval '1 microsecond' from job_queue`, attempts)
		var moved atomic.Int64
		mover := deadletter.MoverFunc(func(_ context.Context, _ pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
			receipt, err := deadletter.NewReceipt(batch.Jobs[0].ID, []byte(`{}`))
			moved.Add(int64(len(batch.Jobs)))
			return []deadletter.Receipt{receipt}, err
		})

		result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{DeadLetter: mover}), 1)

		require.Positive(t, moved.Load())
		require.Equal(t, result.DeadLetterCount, reapertest.States(t, pool)["dead_letter"], attempts)
		require.Equal(t, attempts, reapertest.One[int](t, pool, `select attempts from job_queue where job_kind = 'second'`))
	}
}

// A trigger that puts the old row back makes a reset of nothing, again and again.
func TestAResetThatATriggerUndoesIsNotCounted(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]string{0: "at its reset", 4: "at its move"} {
		pool := reapertest.OpenQueue(t)
		reapertest.Exec(t, pool, `create function keep() returns trigger language plpgsql as $$ begin return old; end $$;
			create trigger keep before update on job_queue for each row when (new.job_kind = 'kept') execute function keep()`)
		reapertest.Stale(t, pool, "kept", 1, attempts, 5)
		reapertest.Stale(t, pool, "good", 2, attempts, 5)

		result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10)

		require.Len(t, result.Actions, 2, want)
		reapertest.RequireFailures(t, pool, result, "kept", "", 1)
	}
}

// The smallest column is full at 32767, and a dry run must not promise what an
// apply cannot do.
func TestAttemptsStandStillAtTheEdgeOfTheirType(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		sql, state string
		want       int
	}{
		"smallint":          {`alter table job_queue alter attempts type smallint; update job_queue set attempts = 32767`, "dead_letter", math.MaxInt16},
		"integer":           {`update job_queue set attempts = 2147483647`, "dead_letter", math.MaxInt32},
		"bigint":            {`alter table job_queue alter attempts type bigint; update job_queue set attempts = 9223372036854775807`, "dead_letter", math.MaxInt64},
		"bigint at 2^31-1":  {`alter table job_queue alter attempts type bigint; update job_queue set attempts = 2147483647`, "dead_letter", math.MaxInt32 + 1},
		"without a maximum": {`alter table job_queue alter max_attempts drop not null; update job_queue set attempts = 2147483647, max_attempts = null`, "dead_letter", math.MaxInt32},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, `alter table job_dead_letter alter attempts type bigint, alter max_attempts drop not null`)
			reapertest.Stale(t, pool, "kind", 1, 0, 5)
			reapertest.Exec(t, pool, test.sql)
			r := reapertest.New(t, pool, reaper.Config{MaxStale: math.MaxInt})

			result := reapertest.Apply(t, r, 10)

			require.Empty(t, result.Failures)
			require.Equal(t, map[string]int{test.state: 1}, reapertest.States(t, pool))
			require.Equal(t, test.want, reapertest.One[int](t, pool, `select attempts from job_queue`))
		})
	}
}

// A receipt that is no JSON object could never be read back from the result.
func TestAReceiptMustBeAnObject(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "dying", 1, 4, 5)
	for _, document := range []string{`garbage`, `[1]`, `"text"`, `null`} {
		mover := deadletter.MoverFunc(func(_ context.Context, _ pgx.Tx, b deadletter.Batch) ([]deadletter.Receipt, error) {
			return []deadletter.Receipt{{JobID: b.Jobs[0].ID, Document: []byte(document)}}, nil
		})
		_, err := reapertest.New(t, pool, reaper.Config{DeadLetter: mover}).Apply(t.Context(), reapertest.Actor, 10)
		require.ErrorIs(t, err, reaper.ErrReceiptCount, document)
	}
	require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))
}

// A migration changes a column's type under a pool that has prepared statements
// for the old one.
func TestATypeThatChangesUnderALivePool(t *testing.T) {
	t.Parallel()
	admin := reapertest.OpenQueue(t)
	pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) { c.MaxConns = 1 })
	r := reapertest.New(t, pool, reaper.Config{})
	for _, migration := range []string{`select`, `alter table job_queue alter job_kind type varchar(40)`,
		`alter table job_queue alter lease_until type timestamptz(3)`, `alter table job_queue alter attempts type bigint`} {
		reapertest.Exec(t, admin, migration)
		reapertest.Stale(t, admin, "kind", 2, 0, 5)
		dryRun, err := r.DryRun(t.Context(), 10)
		require.NoError(t, err, migration)
		require.Len(t, dryRun.Jobs, 2)
		require.Len(t, reapertest.Apply(t, r, 10).Actions, 2, migration)
	}
}
