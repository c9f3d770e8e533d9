package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
