//go:build unix

package pgtest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Ctrl-C, a time limit or the kernel's OOM killer may end a process at any time. None may
// leave a server running.
func TestNoServerOutlivesItsProcess(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		signal syscall.Signal
		moment string
	}{
		"killed before initdb":          {syscall.SIGKILL, ""},
		"killed during initdb":          {syscall.SIGKILL, "data/global"},
		"killed when the server starts": {syscall.SIGKILL, "data/postmaster.pid"},
		"killed while the server runs":  {syscall.SIGKILL, ".s.PGSQL.5432"},
		"interrupted while it runs":     {syscall.SIGINT, ".s.PGSQL.5432"},
		"terminated while it runs":      {syscall.SIGTERM, ".s.PGSQL.5432"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := startChild(t, "hold")
			moment := filepath.Join(c.folder, "pgtest-*", test.moment)
			require.Eventually(t, func() bool {
				there, err := filepath.Glob(moment)
				return err == nil && len(there) == 1
			}, soon, often)
			require.NoError(t, c.Process.Signal(test.signal))
			require.Error(t, c.Wait())
			c.empty(t)
		})
	}
}

// The folder may be removed while processes of the server still run.
func TestTheKilledProcessesServerEnds(t *testing.T) {
	t.Parallel()

	c := startChild(t, "hold")
	pid := postmaster(t, c.line(t))
	require.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }, soon, often)
}

// A signal to a whole process group reaches the supervisor before the process that uses
// the server.
func TestTheSupervisorIgnoresSignals(t *testing.T) {
	t.Parallel()

	c := startChild(t, "hold")
	folder := c.line(t)
	parent := parentOf(t, postmaster(t, folder))
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		require.NoError(t, syscall.Kill(parent, signal))
	}
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	c.empty(t)
}

// A process may return from main without a call of Shutdown.
func TestNothingIsLeftAfterANormalEnd(t *testing.T) {
	t.Parallel()

	c := startChild(t, "return", "PGTEST_DATABASE_URL=")
	c.silent(t)
	c.empty(t)
}

// If the kernel kills the server for its memory, a test must not hang.
func TestAServerThatEndsByItself(t *testing.T) {
	t.Parallel()

	server := start(t, pgtest.ServerConfig{Fsync: true})
	require.NoError(t, syscall.Kill(postmaster(t, server.Folder()), syscall.SIGKILL))
	require.NoError(t, server.Restart(t.Context()))
	require.NoError(t, connect(t, server).Ping(t.Context()))

	require.NoError(t, syscall.Kill(postmaster(t, server.Folder()), syscall.SIGKILL))
	require.NoError(t, server.Stop())
	require.NoDirExists(t, server.Folder())
}

// A test whose context ends while its server starts must not wait for the start.
func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()

	for _, limit := range []time.Duration{0, 50 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err := pgtest.Start(ctx, pgtest.ServerConfig{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
}

// postmaster returns the process id of the server in a folder.
func postmaster(t *testing.T, folder string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "data", "postmaster.pid"))
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	return integer(t, line)
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	output, err := exec.Command("ps", "-o", "ppid=", "-p", strconv.Itoa(pid)).Output()
	require.NoError(t, err)
	return integer(t, string(output))
}

func integer(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	require.NoError(t, err)
	return n
}
