package reaper_test

import (
	"math"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// setColumns are columns of every kind; their values, and what they are then, as text.
var setColumns = map[string]struct {
	typ   string
	value any
	want  string
}{
	"null":          {"text default 'x'", nil, "<null>"},
	"yes":           {"boolean", true, "true"},
	"no":            {"boolean", false, "false"},
	"byte":          {"smallint", uint8(200), "200"},
	"negative":      {"integer", -7, "-7"},
	"rune":          {"integer", 'a', "97"},
	"least":         {"bigint", int64(math.MinInt64), "-9223372036854775808"},
	"most":          {"numeric", uint64(math.MaxUint64), "18446744073709551615"},
	"fraction":      {"numeric(8,2)", "1.50", "1.50"},
	"json":          {"jsonb", `{"it's": "a\"b"}`, `{"it's": "a\"b"}`},
	"raw":           {"json", `{ "a" : 1 }`, `{ "a" : 1 }`},
	"list":          {"text[]", `{"a,b",c}`, `{"a,b",c}`},
	"enum":          {"mood", "it's bad", "it's bad"},
	"domain":        {"small", 3, "3"},
	"folded":        {"citext", "Mail", "Mail"},
	"zoned":         {"timestamptz", "2026-01-02 03:04:05Z", "2026-01-02 03:04:05+00"},
	"empty":         {"text default 'x'", "", ""},
	"injected":      {"text", `'; drop table job_queue; --`, `'; drop table job_queue; --`},
	"escaped":       {"text", `\'; drop table job_queue; --\`, `\'; drop table job_queue; --\`},
	"placeholder":   {"text", "{queue} $1 {job_id} ? :a @b", "{queue} $1 {job_id} ? :a @b"},
	"dollar":        {"text", "$$ $a$ \n\t", "$$ $a$ \n\t"},
	`"; drop --\'`:  {"text", "of an odd name", "of an odd name"},
	"{job_id} q.$1": {"text", "of another", "of another"},
}

// openSets is a queue with all of these columns, and a set of their values.
func openSets(t *testing.T) (*pgxpool.Pool, reaper.Set) {
	t.Helper()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `create extension citext; create type mood as enum ('fine', 'it''s bad');
		create domain small as smallint check (value < 5)`)
	set := reaper.Set{}
	for name, column := range setColumns {
		reapertest.Exec(t, pool, `alter table job_queue add column `+quoted(name)+` `+column.typ)
		set[name] = column.value
	}
	return pool, set
}

// What a set says is what the row has, whatever it holds and however it travels: it is part
// of the statement's text, and a slip in quoting would run it.
func TestASetIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	for _, conforming := range []string{"on", "off"} {
		t.Run("standard_conforming_strings "+conforming, func(t *testing.T) {
			t.Parallel()
			pool, set := openSets(t)
			pool = reapertest.WithSettings(t, pool, map[string]string{"standard_conforming_strings": conforming, "timezone": "UTC"})
			for _, mover := range []deadletter.Mover{
				deadletter.Table{}, deadletter.InPlace{}, deadletter.MoverFunc(deadletter.InPlace{}.Move), deadletter.Table{},
			} {
				reapertest.Exec(t, pool, `delete from job_queue`)
				reapertest.Stale(t, pool, "reset", 1, 0, 5)
				reapertest.Stale(t, pool, "moved", 1, 4, 5)
				cfg := reaper.Config{Queue: reaper.Table{OnReset: set, OnMove: set}, DeadLetter: mover}

				require.Len(t, reapertest.Apply(t, reapertest.New(t, pool, cfg), 10).Actions, 2)

				requireSet(t, pool, 2)
			}
			reapertest.Exec(t, pool, `update job_queue set yes = null, escaped = null`)
			store := deadletter.Store{Queue: reaper.Table{OnReset: set}.DeadLetterQueue()}
			reapertest.Exec(t, pool, `delete from job_queue where job_kind = 'reset'`)
			result, err := deadletter.Redrive(t.Context(), pool, store, "operator", deadletter.Filter{}, 10)
			require.NoError(t, err)
			require.Equal(t, 2, result.RedrivenCount, result)
			requireSet(t, pool, 2)
		})
	}
}

// A driver that puts parameters into the text itself must find none in a literal.
func TestASetTravelsInEveryMode(t *testing.T) {
	t.Parallel()
	admin, set := openSets(t)
	admin = reapertest.WithSettings(t, admin, map[string]string{"timezone": "UTC"})
	for mode, pool := range reapertest.InEveryMode(t, admin) {
		reapertest.Exec(t, admin, `delete from job_queue`)
		reapertest.Stale(t, admin, "reset", 1, 0, 5)
		reapertest.Stale(t, admin, "moved", 1, 4, 5)
		r := reapertest.New(t, pool, reaper.Config{Queue: reaper.Table{OnReset: set, OnMove: set}, DeadLetter: deadletter.InPlace{}})
		require.Len(t, reapertest.Apply(t, r, 10).Actions, 2, mode)
		requireSet(t, admin, 2)
	}
}

// requireSet requires that n rows have the values of the set.
func requireSet(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	for name, column := range setColumns {
		got := reapertest.Column(t, pool, `select coalesce(`+quoted(name)+`::text, '<null>') from job_queue`)
		require.Len(t, got, n)
		for _, value := range got {
			require.Equal(t, column.want, value, name)
		}
	}
}

// Only has the reaper see the rows of its own, and no other statement either.
func TestOnlyLimitsWhatIsStale(t *testing.T) {
	t.Parallel()
	pool, set := openSets(t)
	delete(set, "raw") // json has no equality
	reapertest.Stale(t, pool, "own", 3, 0, 5)
	reapertest.Exec(t, pool, `alter table job_queue add column seen int`)
	own := reapertest.New(t, pool, reaper.Config{Queue: reaper.Table{OnReset: set}})
	require.Len(t, reapertest.Apply(t, own, 10).Actions, 3)
	reapertest.Exec(t, pool, `update job_queue set state = 'leased', lease_until = now() - interval '1 s'`)
	cfg := reaper.Config{Queue: reaper.Table{Only: set}}
	r := reapertest.New(t, pool, cfg)
	plan := review(t, r, 10)
	require.Equal(t, 3, plan.StaleLeaseCount)

	for name, column := range setColumns {
		if name == "raw" {
			continue
		}
		other := `null`
		if column.value == nil {
			other = `'x'`
		}
		tx := reapertest.Begin(t, pool)
		reapertest.Exec(t, tx, `update job_queue set `+quoted(name)+` = `+other)
		theirs := reapertest.New(t, tx, cfg)
		require.Zero(t, review(t, theirs, 10).StaleLeaseCount, name)
		require.Empty(t, reapertest.Apply(t, theirs, 10).Actions, name)
		result, err := theirs.ApplyPlan(t.Context(), reapertest.Actor, plan)
		require.NoError(t, err)
		require.Equal(t, reaper.SkipNotStale, result.Skipped[0].Reason, name)
		require.NoError(t, tx.Rollback(t.Context()))
	}
	require.Len(t, reapertest.Apply(t, r, 10).Actions, 3)
}

// A text that the column's type cannot read, or a column that is not there, fails jobs or
// the apply, with PostgreSQL's own code. It changes no row that it concerns.
func TestASetThatDoesNotFitTheTable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		set   reaper.Set
		state string
	}{
		"no boolean":       {reaper.Set{"yes": "maybe"}, "22P02"},
		"no label":         {reaper.Set{"enum": "glad"}, "22P02"},
		"too large":        {reaper.Set{"byte": 40000}, "22003"},
		"no JSON":          {reaper.Set{"json": "{"}, "22P02"},
		"against a domain": {reaper.Set{"domain": 7}, "23514"},
		"no column":        {reaper.Set{"nowhere": 1}, "42703"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := openSets(t)
			reapertest.Stale(t, pool, "reset", 2, 0, 5)
			reapertest.Stale(t, pool, "moved", 2, 4, 5)
			before := reapertest.Contents(t, pool)

			for _, mover := range []deadletter.Mover{deadletter.Table{}, deadletter.InPlace{}, deadletter.MoverFunc(deadletter.InPlace{}.Move)} {
				cfg := reaper.Config{DeadLetter: mover, Queue: reaper.Table{OnReset: test.set, OnMove: test.set}}
				result, err := reapertest.New(t, pool, cfg).Apply(t.Context(), reapertest.Actor, 10)
				requireCode(t, test.state, result, err)
				require.Equal(t, before, reapertest.Contents(t, pool))
			}
			cfg := reaper.Config{Queue: reaper.Table{Only: test.set}}
			dryRun, err := reapertest.New(t, pool, cfg).DryRun(t.Context(), 10)
			if err != nil {
				requireCode(t, test.state, nil, err)
			} else { // a domain's values are compared as those of its base
				require.Zero(t, dryRun.StaleLeaseCount)
			}

			cfg = reaper.Config{Queue: reaper.Table{OnMove: test.set}}
			result, err := reapertest.New(t, pool, cfg).Apply(t.Context(), reapertest.Actor, 10)
			if err == nil {
				require.Equal(t, []int{2, 0, 2}, []int{result.ResetCount, result.DeadLetterCount, result.FailedCount})
			}
			requireCode(t, test.state, result, err)
			require.Zero(t, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter`))
		})
	}
}

// requireCode requires a SQLSTATE, of an error or of each failure.
func requireCode(t *testing.T, code string, result *reaper.ApplyResult, err error) {
	t.Helper()
	if err != nil {
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr)
		require.Equal(t, code, pgErr.Code)
		return
	}
	require.NotEmpty(t, result.Failures)
	for _, failure := range result.Failures {
		require.Equal(t, code, failure.SQLState, failure)
	}
}

// quoted is a name as SQL.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
