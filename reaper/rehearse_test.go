package reaper_test

import (
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// What no catalog tells: a trigger, a constraint or a privilege would reject every
// job, and the operator would learn it from the first outage.
func TestRehearseReportsWhatRejectsARow(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		sql      string
		cfg      reaper.Config
		problems int
		words    []string
	}{
		"all is well":              {sql: `select 1`},
		"with the function":        {sql: `select 1`, cfg: reaper.Config{DeadLetter: deadletter.Function{}}},
		"a check of other columns": {`alter table job_queue add constraint odd check (state <> 'retry_waiting' or payload ? 'x')`, reaper.Config{}, 1, []string{"reset", "23514", `"odd"`}},
		"a foreign key of the state": {`create table job_state (state text primary key); insert into job_state values ('leased'), ('ready');
			alter table job_queue add constraint states foreign key (state) references job_state`, reaper.Config{}, 2, []string{"23503", `"states"`}},
		"a trigger of the letters": {`create function reject() returns trigger language plpgsql as $$ begin return null; end $$;
			create trigger rejecting before insert on job_dead_letter for each row execute function reject()`, reaper.Config{}, 1, []string{"move", "rejecting"}},
		"a deferred trigger": {`create function reject() returns trigger language plpgsql as $$ begin raise 'secret' using errcode = 'LR003'; end $$;
			create constraint trigger rejecting after update on job_queue deferrable initially deferred for each row
				when (new.state <> 'leased') execute function reject()`, reaper.Config{}, 2, []string{"LR003", "rejecting"}},
		"a trigger of a missing table": {`create function reject() returns trigger language plpgsql as $$ begin perform from nowhere; return new; end $$;
			create trigger rejecting before update on job_queue for each row execute function reject()`, reaper.Config{}, 1, []string{"stale", "42P01", "rejecting"}},
		"a check of the attempts that are reset": {`update job_queue set attempts = 4; alter table job_queue add check (attempts < max_attempts)`, reaper.Config{}, 0, nil},
		"a check of the attempts that are moved": {`alter table job_dead_letter add check (attempts = max_attempts)`, reaper.Config{}, 0, nil},
		"attempts with less room":                {`alter table job_queue alter attempts type smallint; update job_queue set attempts = 32767, max_attempts = 100000`, reaper.Config{}, 0, nil},
		"no replica identity":                    {`alter table job_queue replica identity nothing; create publication p for table job_queue`, reaper.Config{}, 1, []string{"stale", "55000", "replica identity"}},
		"a rule":                                 {`create rule kept as on update to job_queue do instead nothing`, reaper.Config{}, 1, []string{"stale", "0A000", "RETURNING"}},
		"a short last error":                     {`alter table job_queue alter last_error type varchar(30)`, reaper.Config{}, 1, []string{"move", "22001", "varying(30)"}},
		"a view of some letters":                 {`alter table job_dead_letter rename to stored; create view job_dead_letter as select * from stored where final_error = 'x' with check option`, reaper.Config{}, 1, []string{"move", "44000", "check option"}},
		"the dead letters are missing":           {`drop table job_dead_letter`, reaper.Config{}, 1, []string{"move", "42P01"}},
		"the mover is unavailable":               {`select 1`, reaper.Config{DeadLetter: unavailable}, 1, []string{"move", "bucket"}},
	}
	for name, test := range tests {
		for at, state := range map[string]string{"a leased row": "leased", "a row that is ready": "ready"} {
			t.Run(name+", "+at, func(t *testing.T) {
				t.Parallel()
				pool := reapertest.WithOracle(t, reapertest.OpenQueue(t))
				reapertest.CloseGate(t, pool)
				reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
					values ('kind', $1, 'worker', now() + interval '1 hour')`, state)
				reapertest.Exec(t, pool, test.sql)
				before := reapertest.One[string](t, pool, `select string_agg(q::text || q.xmin || q.ctid, ',') from job_queue q`)

				report, err := reapertest.New(t, pool, test.cfg).Rehearse(t.Context())

				require.NoError(t, err)
				require.Len(t, report.Problems, test.problems, report)
				for _, problem := range report.Problems {
					require.Equal(t, reaper.CodeRehearsalFailed, problem.Code)
					require.NotContains(t, problem.Message, "secret")
				}
				for _, word := range test.words {
					require.Contains(t, report.String(), word)
				}
				require.Equal(t, before, reapertest.One[string](t, pool, `select string_agg(q::text || q.xmin || q.ctid, ',') from job_queue q`))
			})
		}
	}
}

// A queue has constraints and triggers that tie a leased row to its owner, and a finished
// one to its end. While nothing is leased, the rehearsal reported them as errors, and an
// apply worked.
func TestRehearseWithoutALeasedRow(t *testing.T) {
	t.Parallel()
	const (
		ready    = `insert into job_queue (job_kind) values ('ready');`
		leased   = `insert into job_queue (job_kind, state, lease_owner, lease_until) values ('leased', 'leased', 'w', now());`
		finished = `alter table job_queue add finished_at timestamptz, add check ((state = 'succeeded') = (finished_at is not null));
			insert into job_queue (job_kind, state, finished_at) values ('a', 'succeeded', now()), ('b', 'succeeded', now());`
		rejecting = `create function reject() returns trigger language plpgsql as $$ begin raise 'secret'; end $$;
			create trigger rejecting before update on job_queue for each row execute function reject();`
		final = `create function final() returns trigger language plpgsql as $$ begin
				if old.state = 'succeeded' then raise 'final'; end if; return new; end $$;
			create trigger final before update on job_queue for each row execute function final();
			insert into job_queue (job_kind, state) values ('a', 'succeeded');`
	)

	tests := map[string]struct {
		sql, code string
		words     []string
	}{
		"an owner of each lease": {`alter table job_queue add check ((state = 'leased') = (lease_owner is not null));` + ready, "", nil},
		"owners": {`alter table job_queue alter lease_owner type text[] using null,
			add check ((state = 'leased') = (lease_owner is not null));` + ready, "", nil},
		"owners that no text names":         {`alter table job_queue alter lease_owner type uuid using null;` + ready, "", nil},
		"finished jobs before one":          {finished + ready, "", nil},
		"finished jobs alone":               {finished, reaper.CodeRehearsalEmpty, []string{"23514", "job_queue_check"}},
		"final jobs before one":             {final + ready, "", nil},
		"final jobs alone":                  {final, reaper.CodeRehearsalEmpty, []string{"P0001", "final"}},
		"a trigger of every write":          {rejecting + ready, reaper.CodeRehearsalEmpty, []string{"P0001", "rejecting"}},
		"a trigger of every write, a lease": {rejecting + ready + leased, reaper.CodeRehearsalFailed, []string{"stale", "P0001", "rejecting"}},
		"a trigger that leaves a row as it is": {`create function keep() returns trigger language plpgsql as 'begin return null; end';
			create trigger kept before update on job_queue for each row execute function keep();` + ready, reaper.CodeRehearsalEmpty, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, test.sql)

			report, err := reapertest.New(t, pool, reaper.Config{}).Rehearse(t.Context())

			require.NoError(t, err)
			if test.code == "" {
				require.Empty(t, report.Problems)
				return
			}
			require.Len(t, report.Problems, 1)
			require.Equal(t, test.code, report.Problems[0].Code)
			require.NotContains(t, report.Problems[0].Message, "secret")
			for _, word := range test.words {
				require.Contains(t, report.Problems[0].Message, word)
			}
		})
	}
}

// A trigger that does not fire rejects nothing. An operator who is told of it looks in the
// wrong place.
func TestRehearseNamesTriggersThatFire(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	reapertest.Exec(t, pool, `create function pass() returns trigger language plpgsql as $$ begin return new; end $$;
		create trigger "Off" before update on job_queue for each row execute function pass();
		create trigger "Replica" before update on job_queue for each row execute function pass();
		create trigger "Always" before update on job_queue for each row execute function pass();
		alter table job_queue disable trigger "Off", enable replica trigger "Replica", enable always trigger "Always",
			add check (state <> 'dead_letter')`)

	report, err := reapertest.New(t, pool, reaper.Config{}).Rehearse(t.Context())

	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
	require.Contains(t, report.Problems[0].Message, `Triggers on the tables: "Always".`)
}

// A queue without a row proves nothing, and must not look like one that is sound.
func TestRehearseNeedsARow(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)

	report, err := reapertest.New(t, pool, reaper.Config{}).Rehearse(t.Context())

	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
	require.Equal(t, reaper.CodeRehearsalEmpty, report.Problems[0].Code)
	require.Equal(t, reaper.SeverityWarning, report.Problems[0].Severity)
}

// The rehearsal writes, though it keeps nothing; on a connection that may not, it
// must say so.
func TestRehearseOnAReadOnlyConnection(t *testing.T) {
	t.Parallel()
	admin := reapertest.OpenQueue(t)
	reapertest.Stale(t, admin, "kind", 1, 0, 5)
	pool := reapertest.WithSettings(t, admin, map[string]string{"default_transaction_read_only": "on"})

	_, err := reapertest.New(t, pool, reaper.Config{}).Rehearse(t.Context())

	require.ErrorIs(t, err, reaper.ErrReadOnly)
}
