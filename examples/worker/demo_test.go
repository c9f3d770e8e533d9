package main

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/gates"
)

// The first thing that a newcomer runs fails, or its accounts are not those that it
// promises.
func TestTheDemoHoldsItsWorkersToAccount(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ args []string }{
		"with the loop":     {[]string{"--demo", "--demo-for", "6s"}},
		"with the reap job": {[]string{"--demo", "--demo-for", "6s", "--reap-as-job"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// What is set for a service of one's own does not change the demo.
			environment := []string{"DATABASE_URL=postgres://me@localhost:1/app", "WORKER_LEASE=1h", "WORKER_DEMO=true"}

			code, stdout, stderr := once(t, environment, test.args...)

			require.Zero(t, code, stdout+stderr)
			require.Empty(t, stderr)
			require.Regexp(t, `worker-1 is KILLED, with \w+ [0-9a-f]{4}`, stdout)
			require.Regexp(t, `reaps \w+ [0-9a-f]{4}, which worker-1 left behind`, stdout)
			require.Contains(t, stdout, "; 0 did not end exactly once\n")
			require.Regexp(t, `[1-9]\d* workers were killed, at [1-9]\d* jobs: `, stdout)
			require.Len(t, regexp.MustCompile(`(?m)^ {2}ok {4}`).FindAllString(stdout, -1), 6)
			require.NotContains(t, stdout, "FAIL")
			for line := range strings.Lines(stdout) {
				require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 110, line)
			}
		})
	}
}

// The first thing that somebody opens is the address that the demo prints.
func TestTheDemoPrintsTheAddressOfItsConsole(t *testing.T) {
	t.Parallel()
	demo := exec.CommandContext(t.Context(), os.Args[0], "--demo", "--demo-for", "1m")
	demo.Env = append(os.Environ(), asProgram+"=1")
	demo.Cancel = func() error { return demo.Process.Signal(syscall.SIGTERM) }
	stdout, err := demo.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, demo.Start())
	defer func() {
		require.NoError(t, demo.Process.Signal(syscall.SIGTERM))
		_ = demo.Wait()
	}()

	address := regexp.MustCompile(`open the console: (http://127\.0\.0\.1:\d+/console/)$`)
	var console string
	for lines := bufio.NewScanner(stdout); console == "" && lines.Scan(); {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			console = found[1]
		}
	}
	require.NotEmpty(t, console)
	go io.Copy(io.Discard, stdout) //nolint:errcheck // so that the demo goes on

	status, overview := fixture.Get(t, console)
	require.Equal(t, 200, status, overview)
	require.Contains(t, overview, "<h1>Overview</h1>")
	for page, want := range map[string]string{
		"queue/overview": "Last passes of the loop",
		"queue/history":  "<td>worker-", // who reaped a killed worker's job
	} {
		require.Eventually(t, func() bool {
			_, body := fixture.Get(t, console+page)
			return strings.Contains(body, want)
		}, fixture.Waiting, 100*time.Millisecond, want)
	}
	changed, err := http.PostForm(console+"queue/gates/close", url.Values{"key": {gates.ReaperEnabled}})
	require.NoError(t, err)
	require.NoError(t, changed.Body.Close())
	_, body := fixture.Get(t, console+"queue/gates")
	require.Contains(t, body, "by demo")
}
