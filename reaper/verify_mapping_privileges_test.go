package reaper_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// asNobody is a pool on the database as a role without any privilege.
func asNobody(t *testing.T, pool *pgxpool.Pool) (asRole *pgxpool.Pool, role string) {
	t.Helper()
	role = reapertest.One[string](t, pool, `select 'login_' || md5(current_database())`)
	reapertest.Exec(t, pool, `create role `+role+` login`)
	t.Cleanup(func() { reapertest.DropRole(t, pool, role) })
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User = role }), role
}

// A role that has only what Verify asks for must be able to reap, and needs no more: no
// write to columns that the mapping leaves alone.
func TestVerifyAsksForThePrivilegesOfTheMapping(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ updates string }{
		"river":           {`{attempted_at,finalized_at,scheduled_at,state}`},
		"graphile-worker": {`{flags,last_error,locked_at,locked_by,run_at}`},
		"pg-boss":         {`{completed_on,output,start_after,started_on,state}`},
		"oban":            {`{attempted_at,attempted_by,discarded_at,scheduled_at,state}`},
		"delayed_job":     {`{attempts,failed_at,last_error,locked_at,locked_by,run_at}`},
		"a team's own":    {`{dead,locked_until,lost,owner,run_at,st,tries,why,"{queue} \" Note"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries[name]
			pool := library.openSound(t, name)
			library.fill(t, pool)
			asRole, role := asNobody(t, pool)

			for range 2 { // a first grant shows what comes next
				for _, problem := range reapertest.Verify(t, asRole, library.config()).Problems {
					require.Equal(t, reaper.CodePrivilegeMissing, problem.Code)
					reapertest.Exec(t, pool, problem.Fix)
				}
			}

			require.Empty(t, reapertest.Verify(t, asRole, library.config()).Problems)
			require.Len(t, reapertest.Apply(t, reapertest.New(t, asRole, library.config()), 100).Actions, 5)
			require.Equal(t, test.updates, reapertest.One[string](t, pool, `select array_agg(attname order by attname collate "C")::text
				from pg_attribute a where attrelid = $1::regclass and attnum > 0 and has_column_privilege($2, attrelid, attnum, 'update')`,
				library.object(""), role))
		})
	}
}
