package reaper_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// role is a placeholder for the test's role in the SQL of the cases.
const role = "{role}"

// fault is one thing that is wrong with a set-up.
type fault struct {
	sql    string // makes it
	code   string
	object string
	cfg    reaper.Config
	again  bool // the fix makes a table or a column, and what that lacks is the next problem
}

var faults = map[string]fault{
	"the queue is missing":          {sql: `drop table job_queue`, code: reaper.CodeTableMissing, object: `"job_queue"`, again: true},
	"the dead letters are missing":  {sql: `drop table job_dead_letter`, code: reaper.CodeTableMissing, object: `"job_dead_letter"`, again: true},
	"the settings are missing":      {sql: `drop table queue_config`, code: reaper.CodeTableMissing, object: `"queue_config"`, again: true},
	"a column of the queue":         {sql: `alter table job_queue drop column last_error`, code: reaper.CodeColumnMissing, object: `"job_queue"."last_error"`, again: true},
	"a column of the dead letters":  {sql: `alter table job_dead_letter drop column moved_by`, code: reaper.CodeColumnMissing, object: `"job_dead_letter"."moved_by"`, again: true},
	"a column of the settings":      {sql: `alter table queue_config drop column value`, code: reaper.CodeColumnMissing, object: `"queue_config"."value"`, again: true},
	"a time without a zone":         {sql: `alter table job_queue alter lease_until type timestamp`, code: reaper.CodeColumnType, object: `"job_queue"."lease_until"`},
	"attempts that are text":        {sql: `alter table job_queue alter attempts drop default, alter attempts type text`, code: reaper.CodeColumnType, object: `"job_queue"."attempts"`},
	"a state that is a number":      {sql: `drop index job_queue_lease_until_idx, job_queue_scheduled_at_idx; alter table job_queue alter state drop default, alter state type integer using 1; create index on job_queue (lease_until)`, again: true, code: reaper.CodeColumnType, object: `"job_queue"."state"`},
	"attempts that may be NULL":     {sql: `alter table job_queue alter attempts drop not null`, code: reaper.CodeColumnNullable, object: `"job_queue"."attempts"`},
	"a maximum that may be NULL":    {sql: `alter table job_queue alter max_attempts drop not null; insert into job_queue (job_kind, max_attempts) values ('k', null)`, code: reaper.CodeColumnNullable, object: `"job_queue"."max_attempts"`},
	"an enum without a state":       {sql: enumStates(`'ready', 'leased', 'retry_waiting'`), code: reaper.CodeStateMissing, object: `job_state`},
	"a required column":             {sql: `alter table job_dead_letter add column team text not null`, code: reaper.CodeColumnRequired, object: `"job_dead_letter"."team"`},
	"no key":                        {sql: `alter table job_queue drop constraint job_queue_pkey`, code: reaper.CodeKeyMissing, object: `"job_queue"."job_id"`},
	"a key over too much":           {sql: `alter table job_queue drop constraint job_queue_pkey; create unique index on job_queue (job_id, state)`, code: reaper.CodeKeyMissing, object: `"job_queue"."job_id"`},
	"no key of the settings":        {sql: `alter table queue_config drop constraint queue_config_pkey`, code: reaper.CodeKeyMissing, object: `"queue_config"."key"`},
	"no right to update":            {sql: `revoke update on job_queue from {role}; grant update (state, attempts, scheduled_at, lease_owner, lease_until) on job_queue to {role}`, code: reaper.CodePrivilegeMissing, object: `"job_queue"`},
	"no right to copy whole rows":   {sql: `revoke select on job_queue from {role}; grant select (job_id, job_kind, state, attempts, max_attempts, scheduled_at, lease_owner, lease_until, last_error) on job_queue to {role}`, code: reaper.CodePrivilegeMissing, object: `"job_queue"`},
	"no right to insert":            {sql: `revoke insert on job_dead_letter from {role}`, code: reaper.CodePrivilegeMissing, object: `"job_dead_letter"`},
	"no right to read the letters":  {sql: `revoke select on job_dead_letter from {role}`, code: reaper.CodePrivilegeMissing, object: `"job_dead_letter"`},
	"no right to read the settings": {sql: `revoke select on queue_config from {role}`, code: reaper.CodePrivilegeMissing, object: `"queue_config"`},
	"no right to lock the settings": {sql: `revoke update (updated_at) on queue_config from {role}`, code: reaper.CodePrivilegeMissing, object: `"queue_config"`},
	"no right on the schema": {
		sql:  `create schema hidden; alter table job_queue set schema hidden`,
		code: reaper.CodePrivilegeMissing, object: `"hidden"."job_queue"`,
		cfg: reaper.Config{Queue: reaper.Table{Name: pgx.Identifier{"hidden", "job_queue"}}},
	},
	"row-level security": {sql: `alter table job_queue enable row level security; create policy mine on job_queue using (job_kind = 'mine')`, code: reaper.CodeRowSecurity, object: `"job_queue"`},
	"a restrictive policy": {sql: `alter table job_queue enable row level security; create policy anyone on job_queue using (true);
		create policy "Mine" on job_queue as restrictive using (job_kind = 'mine')`, code: reaper.CodeRowSecurity, object: `"job_queue"`},
	"settings whose rows cannot be locked": {sql: `alter table queue_config enable row level security; create policy mine on queue_config for select using (true)`, code: reaper.CodeRowSecurity, object: `"queue_config"`},
	"settings whose rows are hidden":       {sql: `alter table queue_config enable row level security; create policy mine on queue_config using (key like 'my.%')`, code: reaper.CodeRowSecurity, object: `"queue_config"`},
	"a gate that is no boolean": {
		sql: `update queue_config set value = 'treu' where key = 'queue.lease.reaper_enabled'`, code: reaper.CodeSettingInvalid, object: gates.ReaperEnabled,
	},
	"a base that is no number": {
		sql: `insert into queue_config (key, value) values ('queue.retry.backoff_base_sec', '10s')`, code: reaper.CodeSettingInvalid, object: gates.BackoffBaseSec,
	},
	"a function that is missing": {
		sql: `select`, code: reaper.CodeFunctionMissing, object: `"no_such"(uuid, text, text)`,
		cfg: reaper.Config{DeadLetter: deadletter.Function{Name: pgx.Identifier{"no_such"}}},
	},
	"a function that takes too little": {
		sql: `create function bury(id uuid) returns jsonb language sql as 'select null::jsonb'`, code: reaper.CodeFunctionSignature, object: `"bury"(uuid, text, text)`,
		cfg: reaper.Config{DeadLetter: deadletter.Function{Name: pgx.Identifier{"bury"}}},
	},
	"a function that returns text": {
		sql: `create function bury(id uuid, a text, e text) returns text language sql as 'select a'`, code: reaper.CodeFunctionSignature, object: `"bury"(uuid, text, text)`,
		cfg: reaper.Config{DeadLetter: deadletter.Function{Name: pgx.Identifier{"bury"}}},
	},
	"a function of which another returns jsonb": {
		sql: `create function bury(id text, a text, e text) returns jsonb language sql as 'select null::jsonb';
			create function bury(id uuid, a text, e text) returns text language sql as 'select a'`, code: reaper.CodeFunctionSignature, object: `"bury"(uuid, text, text)`,
		cfg: reaper.Config{DeadLetter: deadletter.Function{Name: pgx.Identifier{"bury"}}},
	},
	"a function that is not for the role": {
		sql: `create function bury(id uuid, a text, e text) returns jsonb language sql as 'select null::jsonb';
			revoke execute on function bury from public`, code: reaper.CodePrivilegeMissing, object: `"bury"(uuid, text, text)`,
		cfg: reaper.Config{DeadLetter: deadletter.Function{Name: pgx.Identifier{"bury"}}},
	},
	"a function of which another is for the role": {
		sql: `create function bury(id uuid, a text, e text) returns jsonb language sql as 'select null::jsonb';
			revoke execute on function bury from public; create function bury(id int) returns jsonb language sql as 'select null::jsonb'`,
		code: reaper.CodePrivilegeMissing, object: `"bury"(uuid, text, text)`,
		cfg: reaper.Config{DeadLetter: deadletter.Function{Name: pgx.Identifier{"bury"}}},
	},
	"a procedure": {
		sql:  `create procedure bury(id uuid, a text, e text) language sql as 'select'`,
		code: reaper.CodeFunctionSignature, object: `"bury"(uuid, text, text)`,
		cfg: reaper.Config{DeadLetter: deadletter.Function{Name: pgx.Identifier{"bury"}}},
	},
	"leases without an end": {sql: `insert into job_queue (job_kind, state) values ('k', 'leased')`, code: reaper.CodeLeaseEndless, object: `"job_queue"`},
	"leases that end at infinity": {
		sql: `insert into job_queue (job_kind, state, lease_until) values ('k', 'leased', 'infinity')`, code: reaper.CodeLeaseInfinite, object: `"job_queue"`,
	},
	"leases that end next year": {
		sql: `insert into job_queue (job_kind, state, lease_until) values ('k', 'leased', now() + interval '1 year')`, code: reaper.CodeLeaseFar, object: `"job_queue"`,
	},
	"transactions that are read-only": {
		sql:  `do $$ begin execute format('alter role {role} in database %I set default_transaction_read_only = on', current_database()); end $$`,
		code: reaper.CodeReadOnly, object: role,
	},
}

// enumStates gives the queue an enum of states.
func enumStates(labels string) string {
	return `drop index job_queue_lease_until_idx, job_queue_scheduled_at_idx;
		create type job_state as enum (` + labels + `);
		alter table job_queue alter state drop default, alter state type job_state using state::job_state;
		create index on job_queue (lease_until) where state = 'leased'`
}

// An operator who learns of what is missing at night, from an apply that failed,
// could have learned of it before. Each fault is made, seen alone, fixed by the
// SQL that the report gives, and gone.
func TestVerifyFindsEachFaultAndFixesIt(t *testing.T) {
	t.Parallel()

	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, asRole, name := reapertest.LeastPrivileged(t)
			reapertest.Exec(t, pool, strings.ReplaceAll(fault.sql, role, name))
			fault.object = strings.ReplaceAll(fault.object, role, name)

			problem := reapertest.OnlyProblem(t, reconnect(t, asRole), fault.cfg)
			require.Equal(t, fault.code, problem.Code)
			require.Equal(t, fault.object, problem.Object)
			reapertest.Exec(t, pool, problem.Fix)
			for fault.again && len(reapertest.Verify(t, asRole, fault.cfg).Problems) > 0 {
				for _, problem := range reapertest.Verify(t, reconnect(t, asRole), fault.cfg).Problems {
					require.Contains(t, []string{reaper.CodePrivilegeMissing, reaper.CodeIndexMissing}, problem.Code)
					reapertest.Exec(t, pool, problem.Fix)
				}
			}
			require.Empty(t, reapertest.Verify(t, reconnect(t, asRole), fault.cfg).Problems)
		})
	}
}

// reconnect gives the next session the settings that were altered meanwhile.
func reconnect(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	pool.Reset()
	return pool
}

// A report with problems of a sound set-up is one that nobody reads.
func TestVerifyIsEmptyOverASoundSetUp(t *testing.T) {
	t.Parallel()
	pool, asRole, _ := reapertest.LeastPrivileged(t)
	reapertest.Stale(t, pool, "kind", 3, 4, 5)
	before := reapertest.Fingerprint(t, pool)

	require.Empty(t, reapertest.Verify(t, pool, reaper.Config{}).Problems)
	require.Empty(t, reapertest.Verify(t, asRole, reaper.Config{}).Problems)
	require.Empty(t, reapertest.Verify(t, asRole, reaper.Config{Gates: gates.CurrentSetting{}}).Problems)
	quoting := reapertest.WithSettings(t, pool, map[string]string{"quote_all_identifiers": "on"})
	require.Empty(t, reapertest.Verify(t, quoting, reaper.Config{}).Problems)
	require.Equal(t, before, reapertest.Fingerprint(t, pool))
}

// The fix of a function drops it. One that works must not be reported, whatever else has
// its name, and must not be called.
func TestVerifyIsSilentOverFunctionsThatWork(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ sql string }{
		"json":               {`create function bury(id uuid, a text, e text) returns json language sql immutable as $$ select '{}'::json $$`},
		"a domain over json": {`create domain doc as json; create domain receipt as doc; create function bury(id uuid, a text, e text) returns receipt language sql as $$ select '{}'::receipt $$`},
		"a set":              {`create function bury(id uuid, a text, e text) returns setof jsonb language sql as $$ select '{}'::jsonb $$`},
		"a table":            {`create function bury(id uuid, a text, e text) returns table (doc jsonb) language sql as $$ select '{}'::jsonb $$`},
		"a key of any type":  {`create function bury(id anyelement, a text, e text) returns jsonb language sql as $$ select '{}'::jsonb $$`},
		"another of texts":   {`create function bury(id text, a text, e text) returns text language sql as 'select a'; create function bury(id uuid, a text, e text) returns jsonb language sql as $$ select '{}'::jsonb $$`},
		"one that raises":    {`create function bury(id uuid, a text, e text) returns jsonb language plpgsql immutable as $$ begin raise 'called'; end $$`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, test.sql)

			for mode, pool := range reapertest.InEveryMode(t, pool) {
				report := reapertest.Verify(t, pool, reaper.Config{DeadLetter: deadletter.Function{Name: pgx.Identifier{"bury"}}})
				require.Empty(t, report.Problems, mode)
			}
		})
	}
}

// The report is read by people and by programs.
func TestVerifyReportReadsWell(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `drop index job_queue_lease_until_idx; drop table queue_config`)

	report := reapertest.Verify(t, pool, reaper.Config{})

	require.Equal(t, []string{reaper.SeverityError, reaper.SeverityWarning},
		[]string{report.Problems[0].Severity, report.Problems[1].Severity})
	require.Contains(t, report.String(), `warning index_missing: "job_queue"."lease_until"
    No index serves the claim, so every pass reads the whole queue.
    > create index concurrently on "job_queue" ("lease_until") where "state" = 'leased'
`)
	var back reaper.Report
	require.NoError(t, json.Unmarshal([]byte(reapertest.JSON(t, report)), &back))
	require.Equal(t, *report, back)
	require.JSONEq(t, `{"problems":[]}`, reapertest.JSON(t, reapertest.Verify(t, reapertest.OpenQueue(t), reaper.Config{})))
}
