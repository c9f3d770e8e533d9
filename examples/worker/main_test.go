package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/jobs"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

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
		"the job ends in its grace": {4 * time.Second, "1m", "succeeded 0"},
		"the job is given back":     {time.Hour, "1ns", "ready 0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			p := startProgram(t, pool, "worker", "--grace", test.grace, "--lease", "3s")
			enqueue(t, pool, test.takes)
			awaitHeartbeat(t, pool)

			require.NoError(t, p.Process.Signal(syscall.SIGTERM))
			<-p.ended

			require.True(t, p.ProcessState.Success(), p.text())
			require.Equal(t, test.state, fixture.One[string](t, pool,
				`select concat_ws(' ', state, attempts, lease_owner) from job_queue`))
		})
	}
}

// awaitHeartbeat returns when the one job's handler runs: its lease was renewed. A
// lease alone says less, as a claim is committed before the worker has the answer.
func awaitHeartbeat(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	fixture.Eventually(t, pool, running)
	claimed := fixture.One[time.Time](t, pool, `select lease_until from job_queue`)
	fixture.Eventually(t, pool, `select lease_until > $1 from job_queue`, claimed)
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
	const tables = `select count(*) from pg_tables where schemaname = 'public'`
	for range 2 { // it may be said again
		startProgram(t, pool, "worker", "--init").kill()
	}
	require.Equal(t, 4, fixture.One[int](t, pool, tables))
	startProgram(t, pool, "worker", "--init", "--audit").kill()
	require.Equal(t, 5, fixture.One[int](t, pool, tables), "and the audit")
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
		"an actor for all the world": {[]string{"DATABASE_URL=postgres://localhost/app"},
			[]string{"--console", "--console-actor", "me", "--listen", ":9464"}, 2, "needs --listen on loopback"},
		"help": {nil, []string{"--help"}, 0, "-reap-as-job"},
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

// A page of another site could point its own name at this machine, and then act here as if
// it were the console.
func TestTheConsolesActorIsForThisMachineAlone(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		actor, host, want string
		level             console.Level
		err               error
	}{
		"by the address":        {"demo", "127.0.0.1:9464", "demo", console.LevelGates, nil},
		"by version 6":          {"demo", "[::1]:9464", "demo", console.LevelGates, nil},
		"by the machine's name": {"demo", "localhost:9464", "demo", console.LevelGates, nil},
		"by another name":       {"demo", "elsewhere.example:9464", "", console.LevelNone, errNotLocal},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options{consoleActor: test.actor}
			request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			request.Host = test.host
			actor, level, err := o.access()(request)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, actor)
			require.Equal(t, test.level, level)
		})
	}
	require.Nil(t, (&options{}).access())
}
