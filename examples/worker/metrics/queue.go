package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// lookTimeout bounds what a scrape asks of the database.
const lookTimeout = 3 * time.Second

// Queue is what a scrape asks about.
type Queue struct {
	Pool   *pgxpool.Pool
	Reaper *reaper.Reaper // for its dry run; CountUpTo bounds what that costs
	Gates  gates.Table
	Logger *slog.Logger
}

// Queue adds the gauges about the queue and the gates. A database out of reach
// leaves all out but leasereaper_database_up, which is then 0.
func (m *Metrics) Queue(q Queue) {
	m.registry.MustRegister(&queueCollector{
		Queue: q,
		up: prometheus.NewDesc("leasereaper_database_up",
			"Whether the database answered what this scrape asked of it.", nil, nil),
		stale: prometheus.NewDesc("leasereaper_stale_leases",
			"Stale leases now, whatever the grace of the reaper.", nil, nil),
		oldest: prometheus.NewDesc("leasereaper_oldest_overdue_seconds",
			"How long ago the oldest stale lease ended; 0 without one.", nil, nil),
		gate: prometheus.NewDesc("leasereaper_gate_open",
			"Whether a gate is open, and the window, where one is set. With all open, an apply goes ahead.",
			[]string{"gate"}, nil),
	})
}

type queueCollector struct {
	Queue
	up, stale, oldest, gate *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.up, c.stale, c.oldest, c.gate} {
		ch <- desc
	}
}

// Collect implements [prometheus.Collector].
func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	metrics, err := c.look(ctx)
	if err != nil {
		c.Logger.LogAttrs(ctx, slog.LevelWarn, "metrics without the database", slog.Any("err", err))
		metrics = []prometheus.Metric{gauge(c.up, 0)}
	}
	for _, metric := range metrics {
		ch <- metric
	}
}

func (c *queueCollector) look(ctx context.Context) ([]prometheus.Metric, error) {
	values, err := c.settings(ctx)
	if err != nil {
		return nil, err
	}
	result, err := c.Reaper.DryRun(ctx, 1)
	if err != nil {
		return nil, err
	}
	oldest := int64(0)
	for _, job := range result.Jobs {
		oldest = job.OverdueSeconds
	}
	metrics := []prometheus.Metric{
		gauge(c.up, 1),
		gauge(c.stale, float64(result.StaleLeaseCount)),
		gauge(c.oldest, float64(oldest)),
	}
	for _, key := range gates.Keys() {
		if key != gates.BackoffBaseSec {
			metrics = append(metrics, gauge(c.gate, isOpen(values, key, result.EvaluatedAt), key))
		}
	}
	return metrics, nil
}

// settings reads the gates without locking them.
func (c *queueCollector) settings(ctx context.Context) (values gates.Values, err error) {
	readOnly := pgx.TxOptions{AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, c.Pool, readOnly, func(tx pgx.Tx) (err error) {
		values, err = c.Gates.ReadUnlocked(ctx, tx, gates.Keys())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("metrics: read gates: %w", err)
	}
	return values, nil
}

// isOpen is 1 for an open gate. A value that is no boolean never opens one.
func isOpen(values gates.Values, key string, now time.Time) float64 {
	if open, err := values.Gate(key, now); err != nil || !open {
		return 0
	}
	return 1
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}
