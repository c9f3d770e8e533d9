package reaper_test

import (
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// restate gives the queue's state another type. Indexes on the old one are made again.
func restate(typeSQL string) string {
	return `drop index job_queue_lease_until_idx, job_queue_scheduled_at_idx;
		alter table job_queue alter state drop default, alter state type ` + typeSQL + `;
		create index on job_queue (lease_until) where state = 'leased'`
}

// writeFaults are what makes the server reject what an apply writes, or makes it slow.
var writeFaults = map[string]fault{
	"an owner that must not be NULL":      {sql: `alter table job_queue alter lease_owner set not null`, code: reaper.CodeColumnRequired, object: `"job_queue"."lease_owner"`},
	"a lease's end that must not be NULL": {sql: `alter table job_queue alter lease_until set not null`, code: reaper.CodeColumnRequired, object: `"job_queue"."lease_until"`},
	"an owner's domain without NULL":      {sql: `create domain worker as text not null; alter table job_queue alter lease_owner type worker`, code: reaper.CodeColumnRequired, object: `"job_queue"."lease_owner"`},
	"a CHECK without the states":          {sql: `alter table job_queue add constraint states check (state in ('ready', 'leased'))`, code: reaper.CodeCheckExcludesState, object: `"job_queue"`},
	"a CHECK without the dead letter":     {sql: `alter table job_queue add constraint states check (state <> 'dead_letter')`, code: reaper.CodeCheckExcludesState, object: `"job_queue"`},
	"a CHECK in a domain":                 {sql: `create domain job_status as text check (value in ('ready', 'leased'));` + restate(`job_status`), code: reaper.CodeCheckExcludesState, object: `job_status`},
	"a CHECK on the owner":                {sql: `alter table job_queue add constraint owned check (lease_owner is not null or state = 'leased')`, code: reaper.CodeCheckExcludesState, object: `"job_queue"`},
	"a short state":                       {sql: restate(`varchar(10)`), code: reaper.CodeColumnLength, object: `"job_queue"."state"`},
	"a short domain of states":            {sql: `create domain job_status as varchar(10);` + restate(`job_status`), code: reaper.CodeColumnLength, object: `"job_queue"."state"`},
	"a short last error":                  {sql: `alter table job_queue alter last_error type varchar(30)`, code: reaper.CodeColumnLength, object: `"job_queue"."last_error"`},
	"a generated owner":                   {sql: `alter table job_queue drop lease_owner, add lease_owner text generated always as (job_kind) stored`, code: reaper.CodeColumnGenerated, object: `"job_queue"."lease_owner"`},
	"a generated last error":              {sql: `alter table job_queue drop last_error, add last_error text generated always as (job_kind) stored`, code: reaper.CodeColumnGenerated, object: `"job_queue"."last_error"`},
	"a published queue":                   {sql: `alter table job_queue drop constraint job_queue_pkey; create unique index on job_queue (job_id); create publication p for table job_queue`, code: reaper.CodeReplicaIdentity, object: `"job_queue"`},
	"a queue published without":           {sql: `alter table job_queue replica identity nothing; create publication p for all tables`, code: reaper.CodeReplicaIdentity, object: `"job_queue"`},
	"published letters":                   {sql: `alter table job_dead_letter replica identity nothing; create publication p for table job_dead_letter with (publish = 'delete')`, code: reaper.CodeReplicaIdentity, object: `"job_dead_letter"`},
	"a last error that is an enum":        {sql: `create type errors as enum ('lease_expired_reaped'); alter table job_queue alter last_error type errors using last_error::errors`, code: reaper.CodeColumnType, object: `"job_queue"."last_error"`},
	"keys that are an enum":               {sql: `truncate queue_config; create type keys as enum ('a'); alter table queue_config alter key type keys using 'a'`, code: reaper.CodeColumnType, object: `"queue_config"."key"`},
	"short keys of settings":              {sql: `truncate queue_config; alter table queue_config alter key type varchar(10)`, code: reaper.CodeColumnLength, object: `"queue_config"."key"`},
	"padded keys of settings":             {sql: `alter table queue_config alter key type char(64)`, code: reaper.CodeColumnType, object: `"queue_config"."key"`},
	"a last error that must not be NULL":  {sql: `alter table job_queue alter last_error set default '', alter last_error set not null`, code: reaper.CodeColumnRequired, object: `"job_queue"."last_error"`},
	"a CHECK on waits without an error":   {sql: `alter table job_queue add check (state <> 'retry_waiting' or last_error is not null)`, code: reaper.CodeCheckExcludesState, object: `"job_queue"`},
	"a maximum that is computed":          {sql: `alter table job_queue drop max_attempts, add max_attempts int generated always as (5) stored`, code: reaper.CodeColumnNullable, object: `"job_queue"."max_attempts"`},
}

// With each of these every apply rejected every job, and Verify was silent.
func TestVerifyFindsWhatKeepsAnApplyFromWriting(t *testing.T) {
	t.Parallel()

	requireFoundAndFixed(t, writeFaults)
}

// requireFoundAndFixed makes each fault, and requires that it is seen alone and gone after
// its fix.
func requireFoundAndFixed(t *testing.T, faults map[string]fault) {
	t.Helper()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, fault.sql)

			problem := reapertest.OnlyProblem(t, pool, fault.cfg)
			require.Equal(t, fault.code, problem.Code)
			require.Equal(t, fault.object, problem.Object)
			reapertest.Exec(t, pool, problem.Fix)
			require.Empty(t, reapertest.Verify(t, reconnect(t, pool), fault.cfg).Problems)
		})
	}
}

// A report that calls a working schema wrong is not read the next time.
func TestVerifyIsSilentOverSchemasThatWork(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ sql string }{
		"citext": {`create extension citext; alter table job_queue alter last_error type citext, alter job_kind type citext;
			alter table job_dead_letter alter final_error type citext, alter moved_by type citext, alter job_kind type citext`},
		"citext states":                {`create extension citext;` + restate(`citext`)},
		"json in json":                 {`alter table job_queue add payload_text json; alter table job_dead_letter alter job type json`},
		"json in text":                 {`alter table job_queue add payload_text json; alter table job_dead_letter alter job type text`},
		"a CHECK with the states":      {`alter table job_queue add check (state in ('ready', 'leased', 'retry_waiting', 'dead_letter'))`},
		"a CHECK on what is not known": {`alter table job_queue add check (attempts <= max_attempts)`},
		"a CHECK that raises":          {`create function bad(text) returns boolean language plpgsql as 'begin raise; end'; alter table job_queue add check (bad(state))`},
		"an index with the state":      {`drop index job_queue_lease_until_idx; create index on job_queue (state, lease_until)`},
		"an index on set ends":         {`drop index job_queue_lease_until_idx; create index on job_queue (lease_until) where state in ('leased')`},
		"a full index besides":         {`create index on job_queue (lease_until)`},
		"letters with more room":       {`alter table job_queue alter job_id drop default, alter job_id type integer using 1; alter table job_dead_letter drop job_id, add job_id bigint not null`},
		"names": {`alter table job_queue alter last_error type name, alter job_kind type name;
			alter table job_dead_letter alter final_error type name, alter moved_by type name, alter job_kind type name`},
		"documents in varchar":     {`alter table job_dead_letter alter job type varchar`},
		"an owner that is an enum": {`create type owner as enum ('me'); alter table job_queue alter lease_owner type owner using 'me'`},
		"one open letter a job":    {`create unique index on job_dead_letter (job_id) where redriven_at is null`},
		"a published key":          {`create publication p for table job_queue; create unique index "Index" on job_queue (job_id); alter table job_queue replica identity using index "Index"`},
		"published as a whole":     {`create publication p for table job_queue; alter table job_queue replica identity full`},
		"a key on each partition": {`create table parted (like job_queue including defaults) partition by list (state); drop table job_queue; alter table parted rename to job_queue;
			create table live partition of job_queue (primary key (job_id)) for values in ('ready', 'leased', 'retry_waiting');
			create table dead partition of job_queue (primary key (job_id)) default; create index on job_queue (lease_until) where state = 'leased'`},
		"letters with text ids": {`alter table job_dead_letter drop job_id, add job_id text not null`},
		"published with a key":  {`create publication p for all tables`},
		"views": {`alter table job_queue rename to jobs; create view job_queue as table jobs;
			alter table queue_config rename to config; create view queue_config as table config`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, test.sql)

			require.Empty(t, reapertest.Verify(t, pool, reaper.Config{}).Problems)
		})
	}
}
