package catalog_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// A policy that hides a row from the reaper keeps its job leased for ever, and no error
// says so.
func TestHidesRows(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		sql        string
		privileges []string
		hides      bool
		by         string
	}{
		"no row-level security":          {`select`, []string{"select", "update"}, false, ""},
		"no policy":                      {`alter table t enable row level security`, []string{"select"}, true, ""},
		"all rows":                       {`alter table t enable row level security; create policy p on t using (true)`, []string{"select", "insert", "update", "lock"}, false, ""},
		"some rows":                      {`alter table t enable row level security; create policy p on t using (a > 1)`, []string{"select"}, true, ""},
		"all rows to read":               {`alter table t enable row level security; create policy p on t for select using (true)`, []string{"select"}, false, ""},
		"all rows to read, and a lock":   {`alter table t enable row level security; create policy p on t for select using (true)`, []string{"select", "lock"}, true, ""},
		"all rows to read and to lock":   {`alter table t enable row level security; create policy p on t for select using (true); create policy q on t for update using (true) with check (false)`, []string{"select", "lock"}, false, ""},
		"all rows to lock, not to write": {`alter table t enable row level security; create policy p on t using (true) with check (a > 1)`, []string{"select", "update"}, true, ""},
		"all rows to insert":             {`alter table t enable row level security; create policy p on t for insert with check (true)`, []string{"insert"}, false, ""},
		"a policy for others":            {`alter table t enable row level security; create policy p on t to pg_monitor using (true)`, []string{"select"}, true, ""},
		"a restrictive one besides":      {`alter table t enable row level security; create policy p on t using (true); create policy "R" on t as restrictive using (a > 1)`, []string{"select"}, true, `"R"`},
		"a restrictive one for deletes":  {`alter table t enable row level security; create policy p on t using (true); create policy "R" on t as restrictive for delete using (false)`, []string{"select", "update"}, false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, asRole, role := reapertest.LeastPrivileged(t)
			reapertest.Exec(t, pool, `create table t (a int); `+test.sql)
			literal := "'" + role + "'"

			table, err := catalog.Read(t.Context(), reapertest.Begin(t, asRole), pgx.Identifier{"t"})
			require.NoError(t, err)
			hides, by := table.HidesRows(test.privileges, literal)

			require.Equal(t, test.hides, hides)
			if test.by == "" {
				require.Nil(t, by)
				return
			}
			require.Equal(t, test.by, by.Name)
			reapertest.Exec(t, pool, `alter policy `+by.Name+` on t`+by.Exempt(literal))
			table, err = catalog.Read(t.Context(), reapertest.Begin(t, asRole), pgx.Identifier{"t"})
			require.NoError(t, err)
			hides, _ = table.HidesRows(test.privileges, literal)
			require.False(t, hides)
		})
	}
}
