package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/reaper"
)

// New returns a pool on a new database with the reference schema. At the end of the test
// the pool is closed and the database dropped. If the test has failed, the database is
// kept and the test's log names it. Without a server the test fails.
func New(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return open(tb, reaper.Schema)
}

// Empty is New without the schema.
func Empty(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return open(tb, "")
}

// Connect returns another pool on the database of pool. change changes its configuration,
// such as the role or the number of connections. The pool is closed at the end of the
// test.
func Connect(tb testing.TB, pool *pgxpool.Pool, change func(*pgxpool.Config)) *pgxpool.Pool {
	tb.Helper()
	config := pool.Config()
	change(config)
	another, err := pgxpool.NewWithConfig(tb.Context(), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { report(tb, closePool(another)) })
	return another
}

func open(tb testing.TB, schema string) *pgxpool.Pool {
	tb.Helper()
	host, err := process.get(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	database, err := host.open(tb.Context(), schema)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { database.cleanup(tb) })
	return database.Pool
}

// cleanup closes the pool, and drops the database unless the test has failed.
func (d *Database) cleanup(tb testing.TB) {
	tb.Helper()
	if !tb.Failed() {
		report(tb, d.Close())
		return
	}
	report(tb, closePool(d.Pool))
	tb.Logf("pgtest: database %q is kept: %s", d.Name, d.host.connInfo(d.Name))
	if d.host.server != nil {
		tb.Logf("pgtest: its server ends with this process; set PGTEST_DATABASE_URL to keep it longer")
	}
}

func report(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Error(err)
	}
}
