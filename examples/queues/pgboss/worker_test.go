package pgboss_test

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/examples/queues/internal/library"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

//go:embed worker.mjs
var script string

// How a worker's jobs end: not at all, well, or with an error.
const (
	hang   = "hang"
	finish = "finish"
	fail   = "fail"
)

// open is a database with pg-boss's tables, and the index by which the reaper finds what
// it writes.
func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Empty(t)
	run(t, pool, "migrate")
	library.Exec(t, pool, `create index on pgboss.job (id)`)
	return pool
}

// run runs a verb of the script, and returns what it printed.
func run(t *testing.T, pool *pgxpool.Pool, args ...string) string {
	t.Helper()
	return strings.TrimSpace(library.Run(t, pool, library.Node(t, script, args...)))
}

// add adds a job, and returns its id.
func add(t *testing.T, pool *pgxpool.Pool, retryLimit int) string {
	t.Helper()
	return run(t, pool, "add", strconv.Itoa(retryLimit))
}

// start starts a worker as a process of its own.
func start(t *testing.T, pool *pgxpool.Pool, outcome string) *library.Process {
	t.Helper()
	return library.Start(t, pool, library.Node(t, script, outcome))
}

// loseAJob adds a job and kills the worker that works on it. It then dates the job's
// start back, so that its lease has expired.
func loseAJob(t *testing.T, pool *pgxpool.Pool, retryLimit int) string {
	t.Helper()
	id := add(t, pool, retryLimit)
	lost := start(t, pool, hang)
	library.Eventually(t, pool, `select state = 'active' from pgboss.job where id = $1`, id)
	lost.Kill()
	library.Exec(t, pool, `update pgboss.job set started_on = now() - expire_seconds * interval '1 second' - interval '1 minute'
		where id = $1`, id)
	return id
}
