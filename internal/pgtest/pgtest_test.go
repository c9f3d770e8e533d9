package pgtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Tests that share rows pass alone and fail together.
func TestNewMakesADatabaseForEachTest(t *testing.T) {
	t.Parallel()

	one, two := pgtest.New(t), pgtest.New(t)
	_, err := one.Exec(t.Context(), `insert into job_queue (job_kind) values ('mine')`)
	require.NoError(t, err)
	require.Equal(t, 1, number(t, one, `select count(*) from job_queue`))
	require.Zero(t, number(t, two, `select count(*) from job_queue`))
}

// A test with its own DDL would conflict with the tables of the reference schema.
func TestEmptyHasNoTables(t *testing.T) {
	t.Parallel()

	pool := pgtest.Empty(t)
	require.Zero(t, number(t, pool, `select count(*) from pg_class where relnamespace = 'public'::regnamespace`))
}

// A thousand tests leave a thousand databases on a shared server.
func TestNewDropsTheDatabaseOfAPassedTest(t *testing.T) {
	t.Parallel()

	viewer := pgtest.Empty(t)
	test := &endedTest{TB: t}
	pool := pgtest.New(test)
	require.True(t, exists(t, viewer, database(pool)))
	test.end()
	require.False(t, exists(t, viewer, database(pool)))
	require.Empty(t, test.log.String())
}

// A failure that occurs only in CI cannot be examined if its rows are dropped.
func TestNewKeepsTheDatabaseOfAFailedTest(t *testing.T) {
	t.Parallel()

	viewer := pgtest.Empty(t)
	test := &endedTest{TB: t, failed: true}
	pool := pgtest.New(test)
	test.end()
	require.True(t, exists(t, viewer, database(pool)))
	require.Contains(t, test.log.String(), database(pool))
	require.Error(t, pool.Ping(t.Context()), "the pool is open")

	_, err := viewer.Exec(t.Context(), `drop database `+database(pool))
	require.NoError(t, err, "a connection is open")
}

// A test of grants proves nothing if its role is still the superuser.
func TestConnectChangesACopyOfTheConfiguration(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	other := pgtest.Connect(t, pool, func(config *pgxpool.Config) {
		config.MaxConns = 1
		config.ConnConfig.RuntimeParams["application_name"] = "other"
	})
	require.Equal(t, database(pool), database(other))
	require.EqualValues(t, 1, other.Config().MaxConns)
	require.Equal(t, 1, number(t, other, `select count(*) from pg_stat_activity where application_name = 'other'`))
	require.NotEqualValues(t, 1, pool.Config().MaxConns)
	require.NotContains(t, pool.Config().ConnConfig.RuntimeParams, "application_name")
}

// endedTest is a testing.TB that another test ends, as passed or failed.
type endedTest struct {
	testing.TB
	failed   bool
	cleanups []func()
	log      strings.Builder
}

func (e *endedTest) Cleanup(do func()) { e.cleanups = append(e.cleanups, do) }

func (e *endedTest) Failed() bool { return e.failed }

func (e *endedTest) Logf(format string, arguments ...any) {
	fmt.Fprintf(&e.log, format+"\n", arguments...)
}

func (e *endedTest) end() {
	for _, cleanup := range e.cleanups {
		cleanup()
	}
}

func database(pool *pgxpool.Pool) string { return pool.Config().ConnConfig.Database }

func exists(t *testing.T, viewer *pgxpool.Pool, name string) bool {
	t.Helper()
	return number(t, viewer, `select count(*) from pg_database where datname = $1`, name) == 1
}

func number(t *testing.T, pool *pgxpool.Pool, query string, arguments ...any) int {
	t.Helper()
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), query, arguments...).Scan(&n))
	return n
}
