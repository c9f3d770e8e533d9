package main

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// asProgram makes the test's binary run main instead of the tests.
const asProgram = "QUICKSTART_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The first thing a newcomer runs would fail, or show something else than the
// README promises.
func TestWithNothingSetUpItTellsTheWholeStory(t *testing.T) {
	t.Parallel()

	stdout, stderr, err := program(t, "")
	require.NoError(t, err, stderr)
	require.Empty(t, stderr)
	requireStory(t, stdout)
}

// A run against a database that people use would leave its tables there.
func TestItLeavesTheDatabaseAsItWas(t *testing.T) {
	t.Parallel()

	pool := pgtest.Empty(t)
	stdout, stderr, err := program(t, connString(t, pool))
	require.NoError(t, err, stderr)
	require.Empty(t, stderr)
	requireStory(t, stdout)
	require.Empty(t, leftBehind(t, pool))
}

// Ctrl-C in the middle of a step would skip the clean-up.
func TestInterruptedItLeavesTheDatabaseAsItWas(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ at string }{
		"before the dry run":   {"1. The queue"},
		"before the apply":     {"3. The refusals"},
		"after the last write": {"5. The queue afterwards"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			pool := pgtest.Empty(t)
			ctx, cancel := context.WithCancel(t.Context())
			out := &interrupter{at: test.at, interrupt: cancel}
			require.ErrorIs(t, run(ctx, out, connString(t, pool)), context.Canceled)
			require.Contains(t, out.String(), test.at)
			require.Empty(t, leftBehind(t, pool))
		})
	}
}

// A mistyped DATABASE_URL would print a password into a terminal or a log, or a
// page of text in which nobody finds the reason.
func TestAWrongDatabaseURLIsOneLineWithoutThePassword(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ url, want string }{
		"nobody listens":    {"postgres://me:sesame@localhost:1/app", "DATABASE_URL: failed to connect"},
		"not a URL":         {"postgres://me:sesame@local host/app", "not a PostgreSQL connection string"},
		"not a port":        {"postgres://me:sesame@localhost:port/app", "not a PostgreSQL connection string"},
		"not key and value": {"sesame", "not a PostgreSQL connection string"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			stdout, stderr, err := program(t, test.url)
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode())
			require.Empty(t, stdout)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
			require.Contains(t, stderr, test.want)
			require.NotContains(t, stderr, "sesame")
		})
	}
}

// requireStory wants every step, and lines that fit a terminal.
func requireStory(t *testing.T, stdout string) {
	t.Helper()
	for _, want := range []string{
		"send_invoice  leased         0 of 5    worker-1  overdue 9",
		"charge_card   4 of 5    worker-2  overdue 6",
		"actor_required\n",
		"queue.job_substrate.enabled=false\n",
		"queue.lease.reaper_enabled=false\n",
		"queue.lease.reaper_dry_run_only=true\n",
		"\n  \"reset_count\": 2,\n  \"dead_letter_count\": 1,\n",
		"send_invoice  retry_waiting  1 of 5    -         waits ",
		"charge_card  5 of 5    quickstart  lease_expired_reaped_at_max_attempts\n",
	} {
		require.Contains(t, stdout, want)
	}
	for line := range strings.Lines(stdout) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 100, line)
	}
	require.NotContains(t, stdout, "postgres://")
}

// program runs main in a process of its own.
func program(t *testing.T, databaseURL string) (stdout, stderr string, err error) {
	t.Helper()
	var out, complaints bytes.Buffer
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), asProgram+"=1", "DATABASE_URL="+databaseURL)
	command.Stdout, command.Stderr = &out, &complaints
	err = command.Run()
	return out.String(), complaints.String(), err
}

// connString returns a connection string for the database of a pool.
func connString(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	config := pool.Config().ConnConfig
	if !strings.Contains(config.ConnString(), "://") {
		return config.ConnString() + " dbname=" + config.Database
	}
	parsed, err := url.Parse(config.ConnString())
	require.NoError(t, err)
	parsed.Path = "/" + config.Database
	return parsed.String()
}

// leftBehind names the schemas that are there besides PostgreSQL's own, and the
// tables in public.
func leftBehind(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	var names []string
	err := pool.QueryRow(t.Context(), `
		select array(
			select nspname::text
			from pg_namespace
			where nspname !~ '^pg_' and nspname not in ('public', 'information_schema')
			union all
			select tablename::text
			from pg_tables
			where schemaname = 'public')`).Scan(&names)
	require.NoError(t, err)
	return names
}

// interrupter collects text and calls interrupt when that has come to a place.
type interrupter struct {
	bytes.Buffer

	at        string
	interrupt func()
}

func (i *interrupter) Write(text []byte) (int, error) {
	n, err := i.Buffer.Write(text)
	if strings.Contains(i.String(), i.at) {
		i.interrupt()
	}
	return n, err
}
