package reaper_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// kindless is a queue without a column of kinds.
var kindless = reaper.Config{Queue: reaper.Table{Columns: reaper.Columns{JobKind: reaper.None}}}

// letterFaults are what keeps a job from being moved, or its letter from being read.
var letterFaults = map[string]fault{
	"a short final error":       {sql: `alter table job_dead_letter alter final_error type varchar(30)`, code: reaper.CodeColumnLength, object: `"job_dead_letter"."final_error"`},
	"a short name of the actor": {sql: `alter table job_dead_letter alter moved_by type varchar(4)`, code: reaper.CodeColumnLength, object: `"job_dead_letter"."moved_by"`},
	"a short kind":              {sql: `alter table job_dead_letter alter job_kind type varchar(10)`, code: reaper.CodeColumnLength, object: `"job_dead_letter"."job_kind"`},
	"letters with an id of their own": {
		sql: `alter table job_queue alter job_id drop default, alter job_id type bigint using 1;
			alter table job_dead_letter drop job_id, add job_id bigint generated always as identity`,
		code: reaper.CodeColumnGenerated, object: `"job_dead_letter"."job_id"`,
	},
	"letters whose id is computed": {
		sql:  `alter table job_dead_letter drop job_id, add job_id uuid generated always as (md5(job_kind)::uuid) stored`,
		code: reaper.CodeColumnGenerated, object: `"job_dead_letter"."job_id"`,
	},
	"a number, and the queue has a uuid": {
		sql:  `alter table job_dead_letter drop job_id, add job_id bigint not null`,
		code: reaper.CodeKeyType, object: `"job_dead_letter"."job_id"`,
	},
	"a shorter number": {
		sql: `alter table job_queue alter job_id drop default, alter job_id type bigint using 1;
			alter table job_dead_letter drop job_id, add job_id integer not null`,
		code: reaper.CodeKeyType, object: `"job_dead_letter"."job_id"`,
	},
	"jobs without a kind":                 {sql: `alter table job_queue alter job_kind drop not null`, code: reaper.CodeColumnRequired, object: `"job_dead_letter"."job_kind"`},
	"one letter a job":                    {sql: `create unique index "One" on job_dead_letter (job_id)`, code: reaper.CodeKeyType, object: `"job_dead_letter"."job_id"`},
	"one letter a job and kind":           {sql: `alter table job_dead_letter add unique (job_kind, job_id)`, code: reaper.CodeKeyType, object: `"job_dead_letter"."job_id"`},
	"one letter a job by exclusion":       {sql: `alter table job_dead_letter add exclude (job_id with =)`, code: reaper.CodeKeyType, object: `"job_dead_letter"."job_id"`},
	"letters without a key":               {sql: `alter table job_dead_letter drop constraint job_dead_letter_pkey`, code: reaper.CodeKeyMissing, object: `"job_dead_letter"."dead_letter_id"`},
	"partitioned letters without a key":   {sql: `alter table job_dead_letter rename to stored; create table job_dead_letter (like stored including defaults) partition by range (moved_at)`, code: reaper.CodeKeyMissing, object: `"job_dead_letter"."dead_letter_id"`},
	"json that jsonb cannot hold":         {sql: `alter table job_queue add payload_text json`, code: reaper.CodeColumnType, object: `"job_dead_letter"."job"`},
	"a name of the actor that is an enum": {sql: `create type people as enum ('me'); alter table job_dead_letter alter moved_by type people using 'me'`, code: reaper.CodeColumnType, object: `"job_dead_letter"."moved_by"`},
	"an error that is an enum":            {sql: `create type errors as enum ('lease_expired_reaped_at_max_attempts'); alter table job_dead_letter alter final_error type errors using final_error::errors`, code: reaper.CodeColumnType, object: `"job_dead_letter"."final_error"`},
	"attempts with less room":             {sql: `alter table job_dead_letter alter attempts type smallint`, code: reaper.CodeColumnType, object: `"job_dead_letter"."attempts"`},
	"a maximum with less room":            {sql: `alter table job_dead_letter alter max_attempts type smallint`, code: reaper.CodeColumnType, object: `"job_dead_letter"."max_attempts"`},
	"a short document":                    {sql: `alter table job_dead_letter alter job type varchar(100)`, code: reaper.CodeColumnLength, object: `"job_dead_letter"."job"`},
	"no time of the move":                 {sql: `alter table job_dead_letter alter moved_at drop not null, alter moved_at drop default`, code: reaper.CodeColumnNullable, object: `"job_dead_letter"."moved_at"`},
	"one letter an error":                 {sql: `create unique index on job_dead_letter (final_error)`, code: reaper.CodeKeyType, object: `"job_dead_letter"."final_error"`},
	"json in a field of an element":       {sql: `create type note as (text json); create domain notes as note[]; alter table job_queue add notes notes`, code: reaper.CodeColumnType, object: `"job_dead_letter"."job"`},
	"a CHECK on kinds of a queue without": {
		sql:  `alter table job_queue drop column job_kind; alter table job_dead_letter add check (job_kind <> '')`,
		code: reaper.CodeCheckExcludesState, object: `"job_dead_letter"`, cfg: kindless,
	},
	"a domain of kinds of a queue without": {
		sql:  `alter table job_queue drop column job_kind; create domain kind as text check (value <> ''); alter table job_dead_letter alter job_kind type kind`,
		code: reaper.CodeCheckExcludesState, object: `kind`, cfg: kindless,
	},
}

// With each of these jobs stayed in the queue for ever, once their attempts were used
// up, and Verify was silent.
func TestVerifyFindsWhatKeepsAJobFromBeingMoved(t *testing.T) {
	t.Parallel()
	requireFoundAndFixed(t, letterFaults)
}

// A kind that is no text cannot be the empty one that jobs without kinds have.
func TestVerifyFindsKindsThatCannotBeEmpty(t *testing.T) {
	t.Parallel()

	for _, typeSQL := range []string{"integer using 1", "mood using 'good'"} {
		t.Run(typeSQL, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, `create type mood as enum ('good'); alter table job_queue drop column job_kind;
				alter table job_dead_letter alter job_kind type `+typeSQL)

			problem := reapertest.OnlyProblem(t, pool, kindless)

			require.Equal(t, reaper.CodeColumnType, problem.Code)
			require.Equal(t, `"job_dead_letter"`, problem.Object)
		})
	}
}

// A letters' key of a serial takes a privilege that the grants of a table do not have.
func TestVerifyFindsASequenceThatIsNotForTheRole(t *testing.T) {
	t.Parallel()
	pool, asRole, _ := reapertest.LeastPrivileged(t)
	reapertest.Exec(t, pool, `alter table job_dead_letter drop dead_letter_id, add dead_letter_id bigserial primary key,
		add n bigint generated always as identity; grant select on job_dead_letter to public`)

	problem := reapertest.OnlyProblem(t, asRole, reaper.Config{})

	require.Equal(t, reaper.CodePrivilegeMissing, problem.Code)
	require.Equal(t, `job_dead_letter_dead_letter_id_seq`, problem.Object)
	reapertest.Exec(t, pool, problem.Fix)
	require.Empty(t, reapertest.Verify(t, asRole, reaper.Config{}).Problems)
}
