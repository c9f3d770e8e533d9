package graphileworker_test

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

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

// open is a database with graphile-worker's tables.
func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Empty(t)
	library.Run(t, pool, library.Node(t, script, "migrate"))
	return pool
}

// add adds a job, and returns its id.
func add(t *testing.T, pool *pgxpool.Pool, maxAttempts int, queue string) int64 {
	t.Helper()
	output := library.Run(t, pool, library.Node(t, script, "add", strconv.Itoa(maxAttempts), queue))
	id, err := strconv.ParseInt(strings.TrimSpace(output), 10, 64)
	require.NoError(t, err, output)
	return id
}

// start starts a worker as a process of its own.
func start(t *testing.T, pool *pgxpool.Pool, outcome string) *library.Process {
	t.Helper()
	return library.Start(t, pool, library.Node(t, script, outcome))
}

// loseAJob adds a job and kills the worker that works on it. It then dates the job's
// start back, so that its lease has expired.
func loseAJob(t *testing.T, pool *pgxpool.Pool, maxAttempts int, queue string) int64 {
	t.Helper()
	id := add(t, pool, maxAttempts, queue)
	lost := start(t, pool, hang)
	library.Eventually(t, pool,
		`select locked_at is not null from graphile_worker._private_jobs where id = $1`, id)
	lost.Kill()
	library.Exec(t, pool, `update graphile_worker._private_jobs set locked_at = now() - interval '11 minutes'
		where id = $1`, id)
	return id
}
