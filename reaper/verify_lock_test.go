package reaper_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A gate whose value FOR SHARE does not lock can be closed while an apply is under way,
// and the apply commits after it. A view without such a gap must not be reported.
func TestVerifyFindsViewsThatAreNoFence(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		query    string // of the view, over the settings s and their values v
		unfenced bool
	}{
		"the table":                   {`table s`, false},
		"a condition and a cast":      {`select key, lower(value)::text as value, updated_at from s where key like 'queue.%'`, false},
		"a join":                      {`select s.key, v.value, s.updated_at from s join v using (key)`, false},
		"a subquery of the FROM":      {`select * from (select key, value, updated_at from s) s`, false},
		"a view of a table":           {`table plain`, false},
		"a function that reads none":  {`select key, pure(value) as value, updated_at from s`, false},
		"a value of another table":    {`select key, (select v.value from v where v.key = s.key) as value, updated_at from s`, true},
		"a row by another table":      {`select * from s where key in (select key from v)`, true},
		"a CTE":                       {`with v as materialized (table v) select s.key, v.value, s.updated_at from s join v using (key)`, true},
		"a function that reads":       {`select key, look(key) as value, updated_at from s`, true},
		"a view of a value elsewhere": {`table gap`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, `alter table queue_config rename to s; create table v as select key, value from s;
				create function look(k text) returns text stable language sql as $$ select value from v where v.key = k $$;
				create function pure(t text) returns text immutable language sql as $$ select t $$;
				create view plain as table s; create view gap as select key, look(key) as value, updated_at from s;
				create view queue_config as `+test.query)

			var codes []string
			for _, problem := range reapertest.Verify(t, pool, reaper.Config{}).Problems {
				require.Equal(t, `"queue_config"`, problem.Object)
				require.Equal(t, reaper.SeverityWarning, problem.Severity)
				require.Empty(t, problem.Fix)
				codes = append(codes, problem.Code)
			}
			if test.unfenced {
				require.Equal(t, []string{reaper.CodeLockIneffective}, codes)
			} else {
				require.Empty(t, codes)
			}
		})
	}
}

// On another server a lock's wait has no bound, however small the lock timeout: an apply
// hung behind one worker's row, and Verify was silent.
func TestVerifyFindsForeignTables(t *testing.T) {
	t.Parallel()

	for _, table := range []string{"job_queue", "job_dead_letter", "queue_config"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			makeForeign(t, pool, table)

			problem := reapertest.OnlyProblem(t, pool, reaper.Config{})

			require.Equal(t, reaper.Problem{
				Code: reaper.CodeLockIneffective, Severity: reaper.SeverityWarning, Object: `"` + table + `"`, Message: problem.Message,
			}, problem)
		})
	}
}

// makeForeign puts a foreign table in the place of a table, which it reaches as on another
// server.
func makeForeign(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	server := pool.Config().ConnConfig
	reapertest.Exec(t, pool, fmt.Sprintf(`create extension postgres_fdw;
		create server self foreign data wrapper postgres_fdw options (host '%s', port '%d', dbname '%s');
		create user mapping for current_user server self options (user '%s', password_required 'false');
		create schema remote;
		import foreign schema public limit to (%[5]s) from server self into remote options (import_default 'true');
		alter table %[5]s rename to stored;
		alter foreign table remote.%[5]s options (set table_name 'stored');
		alter foreign table remote.%[5]s set schema public`, server.Host, server.Port, server.Database, server.User, table))
}
