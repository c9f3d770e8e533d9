package reaper_test

import (
	"math"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/oracle"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// describe lists the columns and indexes of a database's tables.
func describe(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		select concat_ws(' ', table_name, ordinal_position, column_name, data_type, is_nullable, column_default)
		from information_schema.columns where table_schema = 'public'
		union all
		select indexdef from pg_indexes where schemaname = 'public'
		order by 1`)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return lines
}

// A service executes the schema at each start, over tables that hold jobs.
func TestSchemaRunsAgainAndChangesNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	reapertest.Exec(t, pool, reaper.Schema)
	reapertest.Stale(t, pool, "kind", 3, 0, 5)
	tables, rows := describe(t, pool), reapertest.Fingerprint(t, pool)

	reapertest.Exec(t, pool, reaper.Schema)

	require.Equal(t, tables, describe(t, pool))
	require.Equal(t, rows, reapertest.Fingerprint(t, pool))
}

// The library's tables and the reference's must be the same, or the comparison
// of the two compares something else.
func TestSchemaIsTheReferences(t *testing.T) {
	t.Parallel()
	ours, theirs := pgtest.Empty(t), pgtest.Empty(t)
	reapertest.Exec(t, ours, reaper.Schema)
	reapertest.Exec(t, theirs, oracle.Schema)

	require.Equal(t, describe(t, theirs), describe(t, ours))
}

// "All of them" is what a limit of the largest integer means; it must not cost
// memory for jobs that are not there.
func TestALimitBeyondTheBacklogIsAllOfIt(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 3, 4, 5)
	r := reapertest.New(t, pool, reaper.Config{})

	dryRun, err := r.DryRun(t.Context(), math.MaxInt)
	require.NoError(t, err)
	require.Len(t, dryRun.Jobs, 3)
	require.Len(t, reapertest.Apply(t, r, math.MaxInt).Actions, 3)
}
