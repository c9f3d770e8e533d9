package pgtest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childVariable makes the test binary run as another process that uses the package. Its
// value is the action.
const childVariable = "PGTEST_TEST_CHILD"

// soon bounds a wait for an event, and often is the interval of the checks.
const (
	soon  = 30 * time.Second
	often = 10 * time.Millisecond
)

func TestMain(m *testing.M) {
	what := os.Getenv(childVariable)
	if what == "" {
		os.Exit(m.Run())
	}
	if err := deeds[what](context.Background()); err != nil {
		fmt.Println(err)
	}
}

// child is a process that uses the package, as a test does.
type child struct {
	*exec.Cmd
	folder string
	output io.Reader
}

// startChild starts a child with its own temporary folder.
func startChild(t *testing.T, what string, environment ...string) *child {
	t.Helper()
	command := exec.Command(os.Args[0])
	c := &child{Cmd: command, folder: openFolder(t)}
	c.Env = append(os.Environ(), childVariable+"="+what, "TMPDIR="+c.folder)
	c.Env = append(c.Env, environment...)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	_, err = command.StdinPipe() // A child that holds a server reads until this ends.
	require.NoError(t, err)
	c.output = output
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	return c
}

// line returns the next line that the child prints.
func (c *child) line(t *testing.T) string {
	t.Helper()
	line, err := bufio.NewReader(c.output).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// silent waits for the end of a child that must print nothing.
func (c *child) silent(t *testing.T) {
	t.Helper()
	output, err := io.ReadAll(c.output)
	require.NoError(t, err)
	require.Empty(t, string(output))
	require.NoError(t, c.Wait())
}

// empty waits until the child's temporary folder is empty.
func (c *child) empty(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		left, err := filepath.Glob(filepath.Join(c.folder, "*"))
		return err == nil && len(left) == 0
	}, soon, often, "the temporary folder is not empty")
}

// openFolder returns a folder that every account can use, with a path that is short enough
// for a socket.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "pgtest-of-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(folder, 0o777))
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
