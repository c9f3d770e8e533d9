package reaper_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// mappedFaults are what is wrong with the columns of a library's queue.
var mappedFaults = map[string]struct {
	library, sql string
	code, column string // empty: of the table
	say          string
}{
	"seconds that are missing":   {library: "pg-boss", sql: `alter table jobs drop expire_seconds`, code: reaper.CodeColumnMissing, column: "expire_seconds"},
	"seconds that are a text":    {library: "pg-boss", sql: `alter table jobs alter expire_seconds drop default, alter expire_seconds type text`, code: reaper.CodeColumnType, column: "expire_seconds"},
	"lost leases without column": {library: "a team's own", sql: `drop view jobs; alter table "Jobs" drop lost`, code: reaper.CodeColumnMissing, column: "lost"},
	"lost leases that are text":  {library: "a team's own", sql: `drop view jobs; alter table "Jobs" alter lost type text`, code: reaper.CodeColumnType, column: "lost"},
	"a missing column of Only":   {library: "delayed_job", sql: `alter table jobs drop cron`, code: reaper.CodeColumnMissing, column: "cron"},
	"a missing text of Only":     {library: "delayed_job", sql: `alter table jobs drop "it's"`, code: reaper.CodeColumnMissing, column: "it's"},
	"a missing time of OnMove":   {library: "river", sql: `alter table jobs drop finalized_at`, code: reaper.CodeColumnMissing, column: "finalized_at"},
	"a missing time in UTC":      {library: "oban", sql: `alter table jobs drop discarded_at`, code: reaper.CodeColumnMissing, column: "discarded_at"},
	"a missing number of OnReset": {
		library: "a team's own", sql: `drop view jobs; alter table "Jobs" drop "{queue} "" Note"`, code: reaper.CodeColumnMissing, column: `{queue} " Note`,
	},
	"a value that is too long": {
		library: "a team's own", sql: `drop view jobs; alter table "Jobs" alter "{queue} "" Note" type varchar(1)`,
		code: reaper.CodeColumnLength, column: `{queue} " Note`,
	},
	"a column that is generated": {
		library: "graphile-worker", sql: `alter table jobs drop flags, add flags jsonb generated always as (payload::jsonb) stored`, code: reaper.CodeColumnGenerated, column: "flags",
	},
	"a CHECK of what a move writes":     {library: "graphile-worker", sql: `alter table jobs add check (flags <> '{"dead": true}')`, code: reaper.CodeCheckExcludesState},
	"a CHECK of integer states":         {library: "a team's own", sql: `alter table "Jobs" add check (st in (1, 2) or not dead)`, code: reaper.CodeCheckExcludesState},
	"a lease with a zone in UTC":        {library: "oban", sql: `alter table jobs alter attempted_at type timestamptz`, code: reaper.CodeColumnType, column: "attempted_at", say: "Table.TimesInUTC is for columns without a time zone"},
	"a time to run with a zone in UTC":  {library: "delayed_job", sql: `alter table jobs alter run_at type timestamptz`, code: reaper.CodeColumnType, column: "run_at", say: "Table.TimesInUTC"},
	"a time of a set with a zone":       {library: "oban", sql: `alter table jobs alter discarded_at type timestamptz`, code: reaper.CodeColumnType, column: "discarded_at", say: "off by the session's zone"},
	"a time of a set without a zone":    {library: "pg-boss", sql: `alter table jobs alter completed_on type timestamp`, code: reaper.CodeColumnType, column: "completed_on", say: "off by the session's zone"},
	"a start without a zone":            {library: "river", sql: `alter table jobs alter attempted_at type timestamp using attempted_at at time zone 'utc'`, code: reaper.CodeColumnType, column: "attempted_at", say: "set Table.TimesInUTC"},
	"an end without a zone in a domain": {library: "graphile-worker", sql: `create domain moment as timestamp; alter table jobs drop is_available, alter locked_at type moment using locked_at at time zone 'utc'`, code: reaper.CodeColumnType, column: "locked_at", say: "set Table.TimesInUTC"},
}

// Other types hold the same values. An alarm about them asks for a migration that
// nobody needs.
func TestVerifyIsSilentOverOtherTypesOfMappedColumns(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ library, sql string }{
		"seconds that are numeric":     {"pg-boss", `alter table jobs alter expire_seconds type numeric`},
		"seconds of a fraction":        {"pg-boss", `create domain length as float4; alter table jobs alter expire_seconds type length`},
		"a small state":                {"a team's own", `drop view jobs; alter table "Jobs" alter st type smallint`},
		"a state of a domain":          {"a team's own", `drop view jobs; create domain st as bigint check (value > 0); alter table "Jobs" alter st type st`},
		"a state of a text":            {"a team's own", `drop view jobs; drop index "Jobs_locked_until_idx"; alter table "Jobs" alter st type citext; create index on "Jobs" (locked_until) where st = '1'`},
		"lost leases of a domain":      {"a team's own", `drop view jobs; create domain lost as int not null default 0; alter table "Jobs" alter lost type lost using 0`},
		"a maximum that may be NULL":   {"delayed_job", `alter table jobs add max_attempts int`},
		"an owner and ids of a citext": {"graphile-worker", `create extension citext; alter table jobs alter locked_by type citext, alter id drop identity; alter table jobs alter id type citext`},
		"a date of a move":             {"river", `alter table jobs alter finalized_at type date`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries[test.library]
			pool := library.openSound(t, test.library)
			reapertest.Exec(t, pool, test.sql)
			cfg := library.config()
			if cfg.Queue.Columns.MaxAttempts == reaper.None && test.library == "delayed_job" {
				cfg.Queue.Columns.MaxAttempts = ""
			}

			require.Empty(t, reapertest.Verify(t, pool, cfg).Problems)
		})
	}
}

// A column that only this mapping reads or writes is missed by every apply, and by no one
// before it.
func TestVerifyFindsFaultsOfMappedColumns(t *testing.T) {
	t.Parallel()
	for name, fault := range mappedFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries[fault.library]
			pool := library.openSound(t, fault.library)
			reapertest.Exec(t, pool, fault.sql)

			problem := reapertest.OnlyProblem(t, pool, library.config())

			require.Equal(t, []string{fault.code, reaper.SeverityError}, []string{problem.Code, problem.Severity})
			require.Equal(t, library.object(fault.column), problem.Object)
			require.Contains(t, problem.Message, fault.say)
			reapertest.Exec(t, pool, problem.Fix)
			require.Empty(t, reapertest.Verify(t, pool, library.config()).Problems, problem.Fix)
		})
	}
}

// A column of Only that is added empty makes no row the reaper's: nothing is reaped.
func TestTheFixOfAColumnOfOnlyKeepsTheRows(t *testing.T) {
	t.Parallel()
	library := libraries["delayed_job"]
	pool := library.open(t)
	library.fill(t, pool)
	reapertest.Exec(t, pool, `alter table jobs drop cron, drop "it's"`)

	for _, problem := range reapertest.Verify(t, pool, library.config()).Problems {
		reapertest.Exec(t, pool, problem.Fix)
	}

	require.Len(t, reapertest.Apply(t, reapertest.New(t, pool, library.config()), 100).Actions, 5)
}

// A time that gets its zone by the zone of the operator's session moves every lease by
// hours: live jobs are given away, or those of dead workers lie idle.
func TestTheFixOfATimeKeepsTheMoment(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"river": `alter table jobs alter attempted_at type timestamp using attempted_at at time zone 'utc'`,
		"oban":  `alter table jobs alter attempted_at type timestamptz using attempted_at at time zone 'utc'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries[name]
			pool := library.openSound(t, name)
			library.fill(t, pool)
			moments := `select string_agg(extract(epoch from attempted_at)::text, ',' order by id) from jobs`
			before := reapertest.One[string](t, pool, moments)
			reapertest.Exec(t, pool, sql)

			reapertest.Exec(t, pool, reapertest.OnlyProblem(t, pool, library.config()).Fix)

			require.Equal(t, before, reapertest.One[string](t, pool, moments))
		})
	}
}

// A value of a set that its column cannot take fails every apply, in the middle of the
// night. Only the mapping can be changed.
func TestVerifyFindsValuesThatAColumnCannotTake(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		library string
		change  func(*reaper.Table)
		code    string
		say     []string
	}{
		"no document":          {"graphile-worker", onMove("flags", "dead"), reaper.CodeColumnType, []string{"json", "every move"}},
		"no boolean":           {"delayed_job", only("cron", "maybe"), reaper.CodeColumnType, []string{"boolean", "maybe", "every claim"}},
		"no time":              {"oban", onMove("discarded_at", "never"), reaper.CodeColumnType, []string{"never", "every move"}},
		"a time out of range":  {"oban", onMove("discarded_at", "2026-13-01"), reaper.CodeColumnType, []string{"2026-13-01", "every move"}},
		"a number too large":   {"river", onMove("max_attempts", 100000), reaper.CodeColumnType, []string{"smallint", "100000", "every move"}},
		"a time for a number":  {"river", onMove("max_attempts", reaper.Now), reaper.CodeColumnType, []string{"max_attempts", "every move"}},
		"a state out of range": {"a team's own", dead("3000000000"), reaper.CodeColumnType, []string{"integer", "every move"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries[test.library]
			pool := library.openSound(t, test.library)
			cfg := library.config()
			test.change(&cfg.Queue)

			problem := reapertest.OnlyProblem(t, pool, cfg)

			require.Equal(t, []string{test.code, reaper.SeverityError, ""}, []string{problem.Code, problem.Severity, problem.Fix})
			for _, word := range test.say {
				require.Contains(t, problem.Message, word)
			}
		})
	}
}

func onMove(column string, value any) func(*reaper.Table) {
	return func(t *reaper.Table) { t.OnMove = with(t.OnMove, column, value) }
}

func only(column string, value any) func(*reaper.Table) {
	return func(t *reaper.Table) { t.Only = with(t.Only, column, value) }
}

func dead(state string) func(*reaper.Table) {
	return func(t *reaper.Table) { t.States.DeadLetter = state }
}

// with is a set with another value of a column.
func with(set reaper.Set, column string, value any) reaper.Set {
	set = maps.Clone(set)
	set[column] = value
	return set
}

// The columns of a view are those of other tables.
func TestVerifyOffersNoColumnOnAView(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"a column is missing":  `select id, kind, state, attempt, max_attempts, attempted_at, attempted_by, scheduled_at from stored`,
		"a time has no zone":   `select id, kind, state, attempt, max_attempts, attempted_at at time zone 'utc' as attempted_at, attempted_by, scheduled_at, finalized_at from stored`,
		"another has no zone":  `select id, kind, state, attempt, max_attempts, attempted_at, attempted_by, scheduled_at, finalized_at at time zone 'utc' as finalized_at from stored`,
		"a counter is no more": `select id, kind, state, attempt::text, max_attempts, attempted_at, attempted_by, scheduled_at, finalized_at from stored`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries["river"]
			pool := library.open(t)
			reapertest.Exec(t, pool, `alter table jobs rename to stored; create view jobs as `+sql)

			problem := reapertest.OnlyProblem(t, pool, library.config())

			require.Contains(t, []string{reaper.CodeColumnMissing, reaper.CodeColumnType}, problem.Code)
			require.Empty(t, problem.Fix)
		})
	}
}

// A mark that waiting jobs have as well: List shows them as dead, and Purge removes them.
func TestVerifyFindsMarksThatFreeRowsHave(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		library, sql string
		move         reaper.Set
		codes        []string
	}{
		"a default":             {library: "graphile-worker", sql: `alter table jobs alter flags set default '{"dead": true}'`, codes: []string{reaper.CodeMarkIsDefault}},
		"a time by default":     {library: "delayed_job", sql: `alter table jobs alter failed_at set default now()`, codes: []string{reaper.CodeMarkIsDefault}},
		"a time that always is": {library: "delayed_job", sql: `alter table jobs alter failed_at set not null`, codes: []string{reaper.CodeMarkIsDefault}},
		"another default":       {library: "graphile-worker", sql: `alter table jobs alter flags set default '{}'`},
		"one mark of two, besides": {
			library: "graphile-worker", sql: `alter table jobs add at timestamptz default now()`,
			move: reaper.Set{"flags": `{"dead": true}`, "at": reaper.Now},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries[test.library]
			pool := library.openSound(t, test.library)
			reapertest.Exec(t, pool, test.sql)
			cfg := library.config()
			if test.move != nil {
				cfg.Queue.OnMove = test.move
			}

			var codes []string
			for _, problem := range reapertest.Verify(t, pool, cfg).Problems {
				if problem.Code == reaper.CodeMarkIsDefault || test.codes == nil {
					codes = append(codes, problem.Code)
				}
			}
			require.Equal(t, test.codes, codes)
		})
	}
}
