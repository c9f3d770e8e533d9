package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// go test runs the packages of a module concurrently, and all of them share the server of
// PGTEST_DATABASE_URL.
func TestProcessesShareAServer(t *testing.T) {
	t.Parallel()

	server := start(t, pgtest.ServerConfig{})
	viewer := connect(t, server)
	together(t, server, 3)
	require.Equal(t, 1, number(t, viewer, `select count(*) from pg_database where datname ^@ 'pgtest_'`))
	require.Len(t, templates(t, viewer), 1)
}

// A process that is killed while it makes the template leaves one without
// tables, and every later test fails.
func TestATemplateThatIsHalfMadeIsMadeAgain(t *testing.T) {
	t.Parallel()

	server := start(t, pgtest.ServerConfig{})
	viewer := connect(t, server)
	together(t, server, 1)
	template := templates(t, viewer)[0]
	for _, statement := range []string{
		`alter database ` + template + ` with is_template false allow_connections true`,
		`drop database ` + template,
		`create database ` + template,
	} {
		_, err := viewer.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	together(t, server, 1)
	require.Equal(t, []string{template}, templates(t, viewer))
}

// A long-running program must be able to stop a server that it no longer needs.
func TestShutdownLeavesNothing(t *testing.T) {
	t.Parallel()

	startChild(t, "shutdown", "PGTEST_DATABASE_URL=").silent(t)
}

// After a crash of the server, later tests must report the crash, not only connection
// errors.
func TestOpenTellsThatTheServerHasCrashed(t *testing.T) {
	t.Parallel()

	c := startChild(t, "crash", "PGTEST_DATABASE_URL=")
	c.silent(t)
	c.empty(t)
}

// together runs processes that each use some databases of a server.
func together(t *testing.T, server *pgtest.Server, processes int) {
	t.Helper()
	var children []*child
	for range processes {
		children = append(children, startChild(t, "use", "PGTEST_DATABASE_URL="+server.ConnString("postgres")))
	}
	for _, c := range children {
		c.silent(t)
	}
}

func templates(t *testing.T, viewer *pgxpool.Pool) []string {
	t.Helper()
	var names []string
	const query = `select array_agg(datname::text) from pg_database where datname ^@ 'pgtest_' and datistemplate`
	require.NoError(t, viewer.QueryRow(t.Context(), query).Scan(&names))
	return names
}
