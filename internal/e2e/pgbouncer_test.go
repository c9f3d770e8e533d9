//go:build pgbouncer && unix

// The tests of this file need PgBouncer and fail without it. So that go test ./...
// works where there is none, they are behind a build tag, which .ci/matrix sets:
//
//	go test -tags pgbouncer -run PgBouncer ./reaper

package e2e_test

import (
	"fmt"
	"os"
	command "os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A pool of the service's behind a pooler of the operators' has no session of its
// own: each transaction, and each statement outside of one, may come to another. A
// reaper that relied on anything from the last one would fail now and then, or
// reap by another's settings. QueryExecModeDescribeExec is not among the modes: a
// statement outside of a transaction takes it two round trips, which may come to
// two sessions.
func TestPgBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	server, admin := reapertest.OwnServer(t)
	bouncer := startPgBouncer(t, server)

	modes := map[string]pgx.QueryExecMode{
		"types taken from Go": pgx.QueryExecModeExec,
		"the simple protocol": pgx.QueryExecModeSimpleProtocol,
		"cached descriptions": pgx.QueryExecModeCacheDescribe,
	}
	if bouncer.preparesStatements() {
		modes["cached statements"] = pgx.QueryExecModeCacheStatement
	}
	database := 0
	for name, mode := range modes {
		for with, mover := range reapertest.Movers {
			database++
			reapertest.Exec(t, admin, fmt.Sprintf(`create database pooled_%d`, database))
			direct := pgtest.Connect(t, admin, func(c *pgxpool.Config) {
				c.ConnConfig.Database = fmt.Sprint("pooled_", database)
			})
			t.Run(name+", "+with, func(t *testing.T) {
				t.Parallel()
				reapertest.Exec(t, direct, reaper.Schema)
				reapertest.OpenGates(t, reapertest.WithOracle(t, direct))
				pool := pgtest.Connect(t, direct, func(c *pgxpool.Config) {
					c.ConnConfig.Port = bouncerPort
					c.ConnConfig.DefaultQueryExecMode = mode
				})
				takeTurns(t, pool)

				reapertest.ReapInEveryWay(t, pool, mover)
			})
		}
	}
}

// takeTurns opens all of PgBouncer's connections to a database, and finds that a
// client's statements come to several of them.
func takeTurns(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var open []pgx.Tx
	for range bouncerPool {
		open = append(open, reapertest.Begin(t, pool))
	}
	for _, tx := range open {
		require.NoError(t, tx.Rollback(t.Context()))
	}
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	sessions := map[int]bool{}
	for range 2 * bouncerPool {
		sessions[reapertest.One[int](t, conn, `select pg_backend_pid()`)] = true
	}
	require.Greater(t, len(sessions), 1)
}

const (
	bouncerPort = 6432 // in the name of its socket
	bouncerPool = 4    // connections to each database
)

// bouncerConfig is PgBouncer's configuration. Its connections to a database take
// turns, so that hardly two transactions in a row come to the same one.
const bouncerConfig = `[databases]
* = host=%[1]s port=5432 user=postgres
[pgbouncer]
unix_socket_dir = %[1]s
listen_port = %[2]d
auth_type = any
pool_mode = transaction
default_pool_size = %[3]d
server_round_robin = 1
%[4]s
`

// keeper runs PgBouncer until its own input ends, at the latest with the process
// that holds the other end. $1 is the program, $2 the folder.
const keeper = `"$1" "$2/pgbouncer.ini" </dev/null >"$2/pgbouncer.log" 2>&1 &
read -r _
kill -KILL "$!"
wait`

// pgBouncer is the one that is installed.
type pgBouncer struct {
	program      string
	major, minor int
}

// startPgBouncer starts PgBouncer in front of a server, in the folder and under the
// account of that, because it refuses root. It ends with the test.
func startPgBouncer(t *testing.T, server *pgtest.Server) pgBouncer {
	t.Helper()
	bouncer := findPgBouncer(t)
	more := ""
	if bouncer.preparesStatements() {
		more = "max_prepared_statements = 100"
	}
	config := fmt.Sprintf(bouncerConfig, server.Folder(), bouncerPort, bouncerPool, more)
	require.NoError(t, os.WriteFile(filepath.Join(server.Folder(), "pgbouncer.ini"), []byte(config), 0o644))

	shell := command.Command("/bin/sh", "-c", keeper, "sh", bouncer.program, server.Folder())
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: ownerOf(t, server.Folder())}
	shell.Dir = "/"
	input, err := shell.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, shell.Start())
	t.Cleanup(func() {
		require.NoError(t, input.Close())
		_ = shell.Wait() // what it says is that PgBouncer was killed
	})
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(server.Folder(), fmt.Sprint(".s.PGSQL.", bouncerPort)))
		return err == nil
	}, reapertest.Waiting, reapertest.Tick)
	return bouncer
}

func findPgBouncer(t *testing.T) pgBouncer {
	t.Helper()
	program, err := command.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	output, err := command.CommandContext(t.Context(), program, "--version").Output()
	require.NoError(t, err, "this test needs PgBouncer: apt-get install pgbouncer, or the like of it")
	numbers := regexp.MustCompile(`PgBouncer (\d+)\.(\d+)`).FindSubmatch(output)
	require.NotNil(t, numbers, "%s", output)
	major, err := strconv.Atoi(string(numbers[1]))
	require.NoError(t, err)
	minor, err := strconv.Atoi(string(numbers[2]))
	require.NoError(t, err)
	return pgBouncer{program: program, major: major, minor: minor}
}

// preparesStatements reports whether it can keep track of named statements.
func (b pgBouncer) preparesStatements() bool {
	return b.major > 1 || b.minor >= 21
}

// ownerOf is the account of a folder's owner, or nil, which is this process's, for
// those who cannot become another.
func ownerOf(t *testing.T, folder string) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(folder)
	require.NoError(t, err)
	stat, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	return &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
}
