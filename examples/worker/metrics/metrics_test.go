package metrics_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/metrics"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/work"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// full has every metric, as a service does.
func full(t *testing.T, pool *pgxpool.Pool, kinds ...string) *metrics.Metrics {
	t.Helper()
	r, err := reaper.New(pool, reaper.Config{CountUpTo: 100})
	require.NoError(t, err)
	m := metrics.New(kinds)
	m.Queue(metrics.Queue{Pool: pool, Reaper: r, Logger: slog.New(slog.DiscardHandler)})
	m.Running(func() int { return 3 })
	return m
}

// value reads one series, given its labels in the order of their names, and fails
// when it is not there.
func value(t *testing.T, m *metrics.Metrics, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := m.Registry().Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			found := map[string]string{}
			for _, pair := range metric.GetLabel() {
				found[pair.GetName()] = pair.GetValue()
			}
			if len(found) == len(labels) && subset(labels, found) {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
					float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	require.Fail(t, "no such series", "%s %v", name, labels)
	return 0
}

func subset(some, all map[string]string) bool {
	for name, value := range some {
		if all[name] != value {
			return false
		}
	}
	return true
}

type labels = map[string]string

// An alert on the increase of a counter that is not there yet misses the first
// event.
func TestEverySeriesIsThereFromTheStart(t *testing.T) {
	t.Parallel()
	m := full(t, fixture.Queue(t), "send", "resize")

	for _, kind := range []string{"send", "resize"} {
		for _, source := range []string{"loop", "job"} {
			require.Zero(t, value(t, m, "leasereaper_reaped_total", labels{"outcome": "reset_to_retry_waiting", "kind": kind, "source": source}))
			require.Zero(t, value(t, m, "leasereaper_reaped_total", labels{"outcome": "moved_to_dead_letter", "kind": kind, "source": source}))
		}
		for _, outcome := range []string{"succeeded", "retried", "buried", "given_back", "lost", "unknown"} {
			require.Zero(t, value(t, m, "worker_jobs_total", labels{"outcome": outcome, "kind": kind}))
		}
		require.Zero(t, value(t, m, "worker_job_seconds", labels{"kind": kind}))
	}
	for _, source := range []string{"loop", "job"} {
		require.Zero(t, value(t, m, "leasereaper_failures_total", labels{"source": source}))
		for _, result := range []string{"reaped", "idle", "refused", "error"} {
			require.Zero(t, value(t, m, "leasereaper_pass_seconds", labels{"result": result, "source": source}))
		}
	}
	require.InDelta(t, 3, value(t, m, "worker_jobs_running", nil), 0)
}

// A pass that is counted as another hides an error behind an idle reaper.
func TestAPassIsCountedAsWhatItCameTo(t *testing.T) {
	t.Parallel()
	action := reaper.Action{Action: reaper.ActionReset, JobKind: "send", Overdue: -time.Second}

	tests := map[string]struct {
		pass             reaper.Pass
		result           string
		reaped, failures float64
	}{
		"an error":          {reaper.Pass{Err: errors.New("no")}, "error", 0, 0},
		"a refusal":         {reaper.Pass{Result: &reaper.ApplyResult{Refused: true}}, "refused", 0, 0},
		"nothing was stale": {reaper.Pass{Result: &reaper.ApplyResult{}}, "idle", 0, 0},
		"jobs were reaped":  {reaper.Pass{Result: &reaper.ApplyResult{Actions: []reaper.Action{action, action}}}, "reaped", 2, 0},
		"all were rejected": {reaper.Pass{Result: &reaper.ApplyResult{FailedCount: 3}}, "reaped", 0, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := metrics.New([]string{"send"})

			m.Passed(metrics.Loop, test.pass)

			for _, result := range []string{"reaped", "idle", "refused", "error"} {
				want := 0.0
				if result == test.result {
					want = 1
				}
				require.InDelta(t, want, value(t, m, "leasereaper_pass_seconds", labels{"result": result, "source": "loop"}), 0, result)
			}
			require.InDelta(t, test.reaped, value(t, m, "leasereaper_reaped_total",
				labels{"outcome": "reset_to_retry_waiting", "kind": "send", "source": "loop"}), 0)
			require.InDelta(t, test.reaped, value(t, m, "leasereaper_reaped_overdue_seconds", nil), 0)
			require.InDelta(t, test.failures, value(t, m, "leasereaper_failures_total", labels{"source": "loop"}), 0)
		})
	}
}

// The end of a lease is counted under its outcome and kind, also of a kind that
// nobody foresaw.
func TestTheEndOfALeaseIsCounted(t *testing.T) {
	t.Parallel()
	m := metrics.New(nil)

	m.Ended(work.End{Job: queue.Job{Kind: "new"}, Outcome: work.Lost, Took: time.Second})

	require.InDelta(t, 1, value(t, m, "worker_jobs_total", labels{"outcome": "lost", "kind": "new"}), 0)
	require.InDelta(t, 1, value(t, m, "worker_job_seconds", labels{"kind": "new"}), 0)
}

// An operator looks at the dashboard to see whether a gate is open and whether
// anybody reaps.
func TestAScrapeAsksTheDatabase(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	m := full(t, pool)
	require.InDelta(t, 1, value(t, m, "leasereaper_database_up", nil), 0)
	require.Zero(t, value(t, m, "leasereaper_stale_leases", nil))
	require.Zero(t, value(t, m, "leasereaper_oldest_overdue_seconds", nil))
	for _, gate := range gates.Keys()[:4] {
		require.InDelta(t, 1, value(t, m, "leasereaper_gate_open", labels{"gate": gate}), 0)
	}

	fixture.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until) values
		('send', 'leased', now() - interval '100 s'), ('send', 'leased', now() - interval '10 s'),
		('send', 'leased', now() + interval '1 h')`)
	fixture.Exec(t, pool, `update queue_config set value = case key when $1 then 'true' else 'perhaps' end
		where key in ($1, $2)`, gates.DryRunOnly, gates.SubstrateEnabled)
	fixture.Exec(t, pool, `insert into queue_config (key, value) values ($1, '2020-01-01T00:00:00Z')`, gates.WindowUntil)

	require.InDelta(t, 2, value(t, m, "leasereaper_stale_leases", nil), 0)
	require.InDelta(t, 105, value(t, m, "leasereaper_oldest_overdue_seconds", nil), 5)
	require.Zero(t, value(t, m, "leasereaper_gate_open", labels{"gate": gates.SubstrateEnabled}))
	require.InDelta(t, 1, value(t, m, "leasereaper_gate_open", labels{"gate": gates.ReaperEnabled}), 0)
	require.Zero(t, value(t, m, "leasereaper_gate_open", labels{"gate": gates.DryRunOnly}))
	require.Zero(t, value(t, m, "leasereaper_gate_open", labels{"gate": gates.WindowUntil}))
}

// The database is away, and with it every other metric of the workers, just when
// somebody needs them.
func TestAScrapeWithoutTheDatabaseHasTheRest(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	away := pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Database = "not_there" })
	m := full(t, away, "send")

	require.Zero(t, value(t, m, "leasereaper_database_up", nil))
	require.Zero(t, value(t, m, "worker_job_seconds", labels{"kind": "send"}))
	count, err := testutil.GatherAndCount(m.Registry(), "leasereaper_stale_leases", "leasereaper_gate_open")
	require.NoError(t, err)
	require.Zero(t, count)
}

// A metric's name or help that Prometheus's own linter does not like.
func TestTheMetricsAreNamedAsPrometheusAsks(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(full(t, fixture.Queue(t), "send").Registry())
	require.NoError(t, err)
	require.Empty(t, problems)
}
