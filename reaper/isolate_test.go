package reaper_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// One job that the database rejects, for whatever reason of its owner's, must
// not keep the others in the queue. It stays exactly as it was, and is named.
func TestABadRowStopsNobody(t *testing.T) {
	t.Parallel()

	for name, bad := range reapertest.RejectingSchemas {
		for place, attempts := range map[string]int{"at its reset": 0, "at its move": 4} {
			t.Run(name+" "+place, func(t *testing.T) {
				t.Parallel()
				pool := reapertest.OpenQueue(t)
				reapertest.Exec(t, pool, bad.SQL)
				reapertest.Stale(t, pool, "good", 10, 0, 5)
				reapertest.Stale(t, pool, "good", 10, 4, 5)
				reapertest.Stale(t, pool, name, 1, attempts, 5)
				before := reapertest.BadRows(t, pool, name)

				result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 100)

				require.Equal(t, 10, result.ResetCount)
				require.Equal(t, 10, result.DeadLetterCount)
				reapertest.RequireFailures(t, pool, result, name, bad.SQLState, 1)
				require.Equal(t, before, reapertest.BadRows(t, pool, name))
			})
		}
	}
}

// Several kinds of bad rows at once, and more of them than there are good ones.
func TestManyBadRowsStopNobody(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ each, good int }{
		"one of each among a thousand": {1, 1000},
		"ten of each among ten":        {10, 10},
		"bad rows alone":               {3, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			for name, bad := range reapertest.RejectingSchemas {
				reapertest.Exec(t, pool, bad.SQL)
				reapertest.Stale(t, pool, name, test.each, 0, 5)
				reapertest.Stale(t, pool, name, test.each, 4, 5)
			}
			reapertest.Stale(t, pool, "good", test.good, 0, 5)
			reapertest.Stale(t, pool, "good", test.good, 4, 5)

			result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10000)

			require.Equal(t, test.good, result.ResetCount)
			require.Equal(t, test.good, result.DeadLetterCount)
			require.Equal(t, 2*test.each*len(reapertest.RejectingSchemas), result.FailedCount)
			for name, bad := range reapertest.RejectingSchemas {
				reapertest.RequireFailures(t, pool, result, name, bad.SQLState, 2*test.each)
			}
			require.Equal(t, test.good, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter`))
			require.Equal(t, result.FailedCount, reapertest.States(t, pool)["leased"])
		})
	}
}

// One job whose function is told by another server that it is read-only, and no job of the
// batch is reset or moved.
func TestAJobThatMeetsAReadOnlyServerKeepsNoOther(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `create function move(id uuid, actor text, final_error text) returns jsonb language plpgsql as $$
		begin
			if exists (select from job_queue q where q.job_id = id and q.job_kind = 'odd') then
				raise 'elsewhere' using errcode = '25006';
			end if;
			return '{}';
		end $$`)
	reapertest.Stale(t, pool, "reset", 2, 0, 5)
	reapertest.Stale(t, pool, "move", 2, 4, 5)
	reapertest.Stale(t, pool, "odd", 1, 4, 5)

	result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{DeadLetter: deadletter.Function{Name: pgx.Identifier{"move"}}}), 10)

	require.Equal(t, 2, result.ResetCount)
	require.Equal(t, 2, result.DeadLetterCount)
	require.Equal(t, 1, result.FailedCount)
}

// An operator greps for the library's name, and does not find an error without it.
func TestErrorsOfAnApplyBeginWithThePackage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		schema   string
		settings map[string]string
	}{
		"no dead-letter table": {schema: `drop table job_dead_letter`},
		"a batch that is too slow": {schema: `create function slow() returns trigger language plpgsql as $$
			begin if new.state <> 'leased' then perform pg_sleep(5); end if; return new; end $$;
			create trigger slow before update on job_queue for each row execute function slow()`,
			settings: map[string]string{"statement_timeout": "600ms"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, test.schema)
			reapertest.Stale(t, pool, "kind", 4, 4, 5)

			_, err := reapertest.New(t, reapertest.WithSettings(t, pool, test.settings), reaper.Config{}).Apply(t.Context(), reapertest.Actor, 10)

			require.Error(t, err)
			require.Regexp(t, `^reaper: `, err.Error())
		})
	}
}
