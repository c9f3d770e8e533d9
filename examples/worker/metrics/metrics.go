package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/lease-governance/leasereaper/examples/worker/work"
	"github.com/lease-governance/leasereaper/reaper"
)

// Where a pass comes from.
const (
	Loop = "loop" // Reaper.Run
	Job  = "job"  // the reap job
)

// What a pass came to.
const (
	reaped  = "reaped" // it reaped jobs, or had some rejected
	idle    = "idle"   // nothing was stale
	refused = "refused"
	failed  = "error"
)

// Metrics are a worker's. Its methods may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry

	reaped      *prometheus.CounterVec
	failures    *prometheus.CounterVec
	pass        *prometheus.HistogramVec
	overdue     prometheus.Histogram
	jobs        *prometheus.CounterVec
	jobDuration *prometheus.HistogramVec
}

// New makes the metrics of a worker that knows these kinds of jobs. Each series
// that can be foreseen is there from the start, at zero: the first event is then
// an increase, and an alert has something to look at.
func New(kinds []string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		reaped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leasereaper_reaped_total",
			Help: "Jobs with a stale lease that were reset or moved to the dead letters.",
		}, []string{"outcome", "kind", "source"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leasereaper_failures_total",
			Help: "How often PostgreSQL or the mover rejected a job. The same job counts at each try.",
		}, []string{"source"}),
		pass: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "leasereaper_pass_seconds",
			Help:    "How long passes took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9), // 1 ms to 65 s
		}, []string{"result", "source"}),
		overdue: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "leasereaper_reaped_overdue_seconds",
			Help:    "How long after its end a stale lease was reaped.",
			Buckets: []float64{0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600},
		}),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "worker_jobs_total",
			Help: "Leases of this worker that ended, by how they did.",
		}, []string{"outcome", "kind"}),
		jobDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "worker_job_seconds",
			Help:    "How long jobs took, from the call of the handler to the job's end.",
			Buckets: []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600},
		}, []string{"kind"}),
	}
	m.registry.MustRegister(m.reaped, m.failures, m.pass, m.overdue, m.jobs, m.jobDuration,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.begin(kinds)
	return m
}

// begin makes the series that can be foreseen.
func (m *Metrics) begin(kinds []string) {
	for _, source := range []string{Loop, Job} {
		m.failures.WithLabelValues(source)
		for _, result := range []string{reaped, idle, refused, failed} {
			m.pass.WithLabelValues(result, source)
		}
		for _, kind := range kinds {
			m.reaped.WithLabelValues(reaper.ActionReset, kind, source)
			m.reaped.WithLabelValues(reaper.ActionMoved, kind, source)
		}
	}
	for _, kind := range kinds {
		m.jobDuration.WithLabelValues(kind)
		for _, outcome := range work.Outcomes() {
			m.jobs.WithLabelValues(string(outcome), kind)
		}
	}
}

// Registry has all metrics, for promhttp and for those of your own.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Running adds a gauge of how many jobs run.
func (m *Metrics) Running(running func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "worker_jobs_running",
		Help: "Jobs that this worker is at.",
	}, func() float64 { return float64(running()) }))
}

// Ended counts the end of a lease; it is for [work.Config].OnEnd.
func (m *Metrics) Ended(end work.End) {
	m.jobs.WithLabelValues(string(end.Outcome), end.Job.Kind).Inc()
	m.jobDuration.WithLabelValues(end.Job.Kind).Observe(end.Took.Seconds())
}

// Passed counts a pass of a source; it is for [reaper.RunConfig].OnPass.
func (m *Metrics) Passed(source string, pass reaper.Pass) {
	m.pass.WithLabelValues(resultOf(pass), source).Observe(pass.Took.Seconds())
	if pass.Result == nil {
		return
	}
	m.failures.WithLabelValues(source).Add(float64(pass.Result.FailedCount))
	for _, action := range pass.Result.Actions {
		m.reaped.WithLabelValues(action.Action, action.JobKind, source).Inc()
		m.overdue.Observe(max(action.Overdue, time.Duration(0)).Seconds())
	}
}

func resultOf(pass reaper.Pass) string {
	switch {
	case pass.Err != nil:
		return failed
	case pass.Result.Refused:
		return refused
	case len(pass.Result.Actions)+pass.Result.FailedCount > 0:
		return reaped
	}
	return idle
}
