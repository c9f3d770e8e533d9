package service_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/jobs"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/reapjob"
	"github.com/lease-governance/leasereaper/examples/worker/service"
	"github.com/lease-governance/leasereaper/examples/worker/work"
	"github.com/lease-governance/leasereaper/reaper"
)

// A load balancer, Kubernetes and Prometheus ask, each for another thing.
func TestTheServiceAnswers(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		pool   func(*testing.T) *pgxpool.Pool
		path   string
		status int
		body   string
	}{
		"it lives":                             {reachable, "/healthz", 200, "ok"},
		"it is ready":                          {reachable, "/readyz", 200, "ok"},
		"it has metrics":                       {reachable, "/metrics", 200, "leasereaper_database_up 1"},
		"it lives without its database":        {unreachable, "/healthz", 200, "ok"},
		"it is not ready without its database": {unreachable, "/readyz", 503, "database out of reach"},
		"it has metrics without its database":  {unreachable, "/metrics", 200, "leasereaper_database_up 0"},
		"another page":                         {reachable, "/", 404, "404 page not found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := start(t, test.pool(t), quick(service.Config{})).get(t, test.path)
			require.Equal(t, test.status, status)
			require.Contains(t, body, test.body)
		})
	}
}

// While a worker is being stopped it gets no more traffic, and its last metrics can
// still be read.
func TestAStoppingServiceIsNotReadyAndIsMeasuredToTheEnd(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	began, release := make(chan struct{}), make(chan struct{})
	r := start(t, pool, quick(service.Config{
		Grace: time.Minute,
		Handlers: map[string]work.Handler{"send": func(context.Context, queue.Job) (work.Done, error) {
			close(began)
			<-release
			return work.Done{}, nil
		}},
	}))
	_, err := queue.Enqueue(t.Context(), pool, queue.NewJob{Kind: "send"})
	require.NoError(t, err)
	<-began
	r.halt()

	status, body := r.get(t, "/readyz")
	require.Equal(t, 503, status)
	require.Equal(t, "stopping", body)
	_, body = r.get(t, "/metrics")
	require.Contains(t, body, "worker_jobs_running 1")
	close(release)
	require.NoError(t, r.stop())
	require.Equal(t, "succeeded", fixture.One[string](t, pool, `select state from job_queue`))
}

// The port is taken away, or the configuration is wrong: a process that lives on and
// does half of its work is found out late.
func TestAServiceThatCannotGoOnEnds(t *testing.T) {
	t.Parallel()

	t.Run("its listener breaks", func(t *testing.T) {
		t.Parallel()
		s, err := service.New(fixture.Queue(t), quick(service.Config{}))
		require.NoError(t, err)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		require.ErrorIs(t, s.Run(t.Context(), listener), net.ErrClosed)
	})
	t.Run("its loop has a fault", func(t *testing.T) {
		t.Parallel()
		cfg := quick(service.Config{})
		cfg.Loop.MinInterval = time.Hour
		s, err := service.New(fixture.Queue(t), cfg)
		require.NoError(t, err)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.ErrorIs(t, s.Run(t.Context(), listener), reaper.ErrInvalidIntervals)
	})
}

// The database is back after a restart. The reap job must leave the workers as long
// to renew as the loop does, or it gives away the jobs of all of them.
func TestTheReapJobLetsWorkersRenew(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	fixture.Exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		values ('walk_the_dog', 'leased', 'renews soon', now() - interval '1 minute')`)
	cfg := quick(service.Config{ReapAsJob: true})
	cfg.Loop.Settle = 10 * 365 * 24 * time.Hour
	r := start(t, pool, cfg)

	fixture.Eventually(t, pool, `select exists (select from job_queue where job_kind = 'queue.lease.reap' and state = 'succeeded')`)
	require.NoError(t, r.stop())
	require.Equal(t, "leased", fixture.One[string](t, pool, `select state from job_queue where job_kind = 'walk_the_dog'`))
}

// Each part's faults come before anything is started.
func TestNewReportsTheFaultsOfItsParts(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		cfg service.Config
		err error
	}{
		"no handlers":      {service.Config{}, work.ErrNoHandlers},
		"a negative lease": {service.Config{Handlers: jobs.Handlers(), Lease: -1}, queue.ErrNegative},
		"a negative grace": {service.Config{Handlers: jobs.Handlers(), Grace: -1}, work.ErrNegative},
		"the reaper's":     {service.Config{Handlers: jobs.Handlers(), Reaper: reaper.Config{MaxStale: -1}}, reaper.ErrNegative},
		"the reap job's":   {service.Config{Handlers: jobs.Handlers(), ReapAsJob: true, ReapEvery: -1}, reapjob.ErrNegative},
	}
	pool := fixture.Queue(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := service.New(pool, test.cfg)
			require.ErrorIs(t, err, test.err)
		})
	}
}

// An index that is missing makes every look of the reaper read the whole queue, and
// nobody knows why the database is busy.
func TestTheLogTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	fixture.Exec(t, pool, `drop index job_queue_lease_until_idx`)
	r := start(t, pool, quick(service.Config{}))

	require.Eventually(t, func() bool { return r.log.has("code=index_missing") }, fixture.Waiting, fixture.Tick)
	require.NoError(t, r.stop())
}

// Renewals that wait for a connection behind busy jobs come too late.
func TestThePoolHasAConnectionForEachSlot(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		url   string
		slots int
		want  int32
	}{
		"many slots":         {"postgres://localhost/app", 50, 54},
		"a larger pool":      {"postgres://localhost/app?pool_max_conns=90", 50, 90},
		"a pool too small":   {"postgres://localhost/app?pool_max_conns=2", 50, 54},
		"in keys and values": {"host=localhost pool_max_conns=70", 4, 70},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, err := service.OpenPool(t.Context(), test.url, "me", test.slots)
			require.NoError(t, err)
			defer pool.Close()
			require.Equal(t, test.want, pool.Config().MaxConns)
			require.Equal(t, "me", pool.Config().ConnConfig.RuntimeParams["application_name"])
		})
	}
	_, err := service.OpenPool(t.Context(), "postgres://me:sesame@local host/app", "me", 1)
	require.ErrorIs(t, err, service.ErrNotAURL)
	require.NotContains(t, err.Error(), "sesame")
}
