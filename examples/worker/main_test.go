package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/jobs"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// asProgram makes the test's binary run main instead of the tests.
const asProgram = "LEASEREAPER_WORKER_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program is the service in a process of its own.
type program struct {
	*exec.Cmd

	name  string
	ended chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// startProgram returns when the program serves. It is killed at the test's end.
func startProgram(t *testing.T, pool *pgxpool.Pool, name string, args ...string) *program {
	t.Helper()
	args = append([]string{"--name", name, "--listen", "127.0.0.1:0", "--poll", "10ms",
		"--interval", "100ms", "--min-interval", "10ms", "--settle", "1ns"}, args...)
	p := &program{Cmd: exec.Command(os.Args[0], args...), name: name, ended: make(chan struct{})}
	p.Env = append(os.Environ(), asProgram+"=1", "DATABASE_URL="+connString(t, pool))
	stderr, err := p.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	serving := make(chan struct{})
	go p.read(stderr, sync.OnceFunc(func() { close(serving) }))
	t.Cleanup(p.kill)
	select {
	case <-serving:
	case <-p.ended:
		require.FailNow(t, "it ended", p.text())
	case <-time.After(fixture.Waiting):
		require.FailNow(t, "it does not serve", p.text())
	}
	return p
}

func (p *program) read(log io.Reader, serving func()) {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		var record struct{ Msg string }
		if json.Unmarshal(lines.Bytes(), &record) == nil && record.Msg == "serving" {
			serving()
		}
	}
	_ = p.Wait()
	close(p.ended)
}

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// kill kills it with SIGKILL.
func (p *program) kill() {
	_ = p.Process.Kill()
	<-p.ended
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

// once runs the program to its end, without a database unless the environment
// says so.
func once(t *testing.T, environment []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out, complaints bytes.Buffer
	command := exec.CommandContext(ctx, os.Args[0], args...)
	command.Env = append(append(os.Environ(), asProgram+"=1", "DATABASE_URL="), environment...)
	command.Stdout, command.Stderr = &out, &complaints
	err := command.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit, complaints.String())
	}
	return command.ProcessState.ExitCode(), out.String(), complaints.String()
}

// enqueue adds one job, which takes its time.
func enqueue(t *testing.T, pool *pgxpool.Pool, takes time.Duration) {
	t.Helper()
	_, err := queue.Enqueue(t.Context(), pool, queue.NewJob{
		Kind: jobs.SendInvoice, Payload: jobs.Payload{TakesMS: int(takes.Milliseconds())},
	})
	require.NoError(t, err)
}

const running = `select count(*) = 1 from job_queue where job_kind = 'send_invoice' and state = 'leased'`

// What systemd and Kubernetes do at a deployment: the job goes on in its grace, or it
// is given back.
func TestSIGTERMEndsTheServiceInOrder(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		takes time.Duration
		grace string
		state string
	}{
		"the job ends in its grace": {time.Second, "1m", "succeeded 0"},
		"the job is given back":     {time.Hour, "1ns", "ready 0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			p := startProgram(t, pool, "worker", "--grace", test.grace)
			enqueue(t, pool, test.takes)
			fixture.Eventually(t, pool, running)

			require.NoError(t, p.Process.Signal(syscall.SIGTERM))
			<-p.ended

			require.True(t, p.ProcessState.Success(), p.text())
			require.Equal(t, test.state, fixture.One[string](t, pool,
				`select concat_ws(' ', state, attempts, lease_owner) from job_queue`))
		})
	}
}

// The worker is killed, and the reaper of another one gives its job back.
func TestAKilledWorkersJobIsDoneByAnother(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	first := startProgram(t, pool, "first", "--lease", "1s")
	enqueue(t, pool, time.Second)
	fixture.Eventually(t, pool, running)
	first.kill()
	startProgram(t, pool, "second", "--lease", "1s")

	fixture.Eventually(t, pool, `select state = 'succeeded' and attempts = 1 from job_queue`)
	require.Regexp(t, `^second/`, fixture.One[string](t, pool, `select done_by from worker_receipt`))
}

// Whoever supervises the worker and dies would leave it behind.
func TestItStopsWithItsStandardInput(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	code, _, log := once(t, []string{"DATABASE_URL=" + connString(t, pool)}, "--stop-on-eof", "--listen", "127.0.0.1:0")
	require.Zero(t, code, log)
	require.Contains(t, log, "stopped working")
}

// A first start on an empty database.
func TestInitMakesTheTables(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	for range 2 { // it may be said again
		startProgram(t, pool, "worker", "--init").kill()
	}
	require.Equal(t, 4, fixture.One[int](t, pool, `select count(*) from pg_tables where schemaname = 'public'`))
	require.Zero(t, fixture.One[int](t, pool, `select count(*) from queue_config`), "the gates are the operators' to open")
}

// A mistake on the command line should say what it is, and not print a password.
func TestMistakesAreSaidInALine(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		environment []string
		args        []string
		code        int
		want        string
	}{
		"no database":           {nil, nil, 2, "give --database-url, or DATABASE_URL, or --demo"},
		"an unknown flag":       {nil, []string{"--leese", "1s"}, 2, "flag provided but not defined: -leese"},
		"an argument":           {nil, []string{"--demo", "now"}, 2, `unexpected argument "now"`},
		"a wrong variable":      {[]string{"WORKER_LEASE=soon"}, []string{"--demo"}, 2, "WORKER_LEASE: parse error"},
		"not a URL":             {nil, []string{"--database-url", "postgres://me:sesame@local host/app"}, 1, "not a PostgreSQL connection string"},
		"nobody to make tables": {nil, []string{"--init", "--database-url", "postgres://me:sesame@localhost:1/app"}, 1, "create tables: failed to connect"},
		"a negative setting":    {[]string{"DATABASE_URL=postgres://localhost/app"}, []string{"--lease", "-1s"}, 1, "negative setting: Lease -1s"},
		"no such address":       {[]string{"DATABASE_URL=postgres://localhost/app"}, []string{"--listen", "nowhere"}, 1, "missing port in address"},
		"help":                  {nil, []string{"--help"}, 0, "-reap-as-job"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := once(t, test.environment, test.args...)
			require.Equal(t, test.code, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, test.want)
			require.NotContains(t, stderr, "sesame")
		})
	}
}

// The environment sets what the command line does not.
func TestFlagsGoBeforeTheEnvironment(t *testing.T) {
	t.Parallel()
	environment := map[string]string{
		"DATABASE_URL": "postgres://localhost/app", "WORKER_LEASE": "7s", "WORKER_WORKERS": "9", "WORKER_REAP_AS_JOB": "true", "WORKER_NAME": "",
	}
	lookup := func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	}

	o, err := parse([]string{"--lease", "8s"}, lookup, io.Discard)

	require.NoError(t, err)
	require.Equal(t, 8*time.Second, o.lease)
	require.Equal(t, 9, o.slots)
	require.True(t, o.reapAsJob)
	require.Equal(t, "postgres://localhost/app", o.databaseURL)
	require.Equal(t, ownName(), o.name)
}
