package reaper_test

import (
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// The size of the benchmarks' queue and of their batches.
const (
	benchQueue = 20_000
	benchBatch = 1000
)

// benchFill makes a queue in which every tenth job is out of tries, warm and
// analysed.
func benchFill(b *testing.B, pool *pgxpool.Pool) {
	b.Helper()
	reapertest.Exec(b, pool, `truncate job_queue, job_dead_letter`)
	reapertest.Stale(b, pool, "retryable", benchQueue*9/10, 0, 5)
	reapertest.Stale(b, pool, "exhausted", benchQueue/10, 4, 5)
	reapertest.Exec(b, pool, `vacuum analyze job_queue`)
}

// benchBatches runs one batch an iteration over a queue that is filled again
// when it is empty, off the clock, and reports the time a job took.
func benchBatches(b *testing.B, batch func(b *testing.B, pool *pgxpool.Pool)) {
	b.Helper()
	pool := reapertest.WithOracle(b, reapertest.OpenQueue(b))
	b.ReportAllocs()
	left := 0
	for b.Loop() {
		if left == 0 {
			b.StopTimer()
			benchFill(b, pool)
			left = benchQueue
			b.StartTimer()
		}
		batch(b, pool)
		left -= benchBatch
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchBatch), "ns/job")
}

// The time to reap one job in batches of 1000, one in ten a dead letter, by the
// library and by the reference function called from Go. Compare their ns/job.
func BenchmarkApply(b *testing.B) {
	b.Run("library", func(b *testing.B) {
		benchBatches(b, func(b *testing.B, pool *pgxpool.Pool) {
			require.Len(b, reapertest.Apply(b, reapertest.New(b, pool, reaper.Config{}), benchBatch).Actions, benchBatch)
		})
	})
	b.Run("oracle", func(b *testing.B) {
		benchBatches(b, func(b *testing.B, pool *pgxpool.Pool) {
			reapertest.One[[]byte](b, pool, `select fn_job_reap_stale_leases_apply($1, $2)`, reapertest.Actor, benchBatch)
		})
	})
}

// The time that a drain takes for a job, in batches of 100, and that eight drains
// take which meet over the same jobs. Eight are slower than one where they get in
// each other's way.
func BenchmarkDrain(b *testing.B) {
	for name, drains := range map[string]int{"alone": 1, "eight at once": 8} {
		b.Run(name, func(b *testing.B) {
			pool := pgtest.Connect(b, reapertest.OpenQueue(b), func(c *pgxpool.Config) { c.MaxConns = int32(drains) })
			for b.Loop() {
				b.StopTimer()
				benchFill(b, pool)
				b.StartTimer()
				drainTogether(b, pool, drains, 100)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchQueue), "ns/job")
		})
	}
}

// The time to show one job of 1000 out of 20,000 stale ones, by the library and
// by the reference function called from Go. Compare their ns/job.
func BenchmarkDryRun(b *testing.B) {
	run := func(b *testing.B, dryRun func(pool *pgxpool.Pool)) {
		pool := reapertest.WithOracle(b, reapertest.OpenQueue(b))
		benchFill(b, pool)
		b.ReportAllocs()
		for b.Loop() {
			dryRun(pool)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchBatch), "ns/job")
	}
	b.Run("library", func(b *testing.B) {
		run(b, func(pool *pgxpool.Pool) {
			_, err := reapertest.New(b, pool, reaper.Config{}).DryRun(b.Context(), benchBatch)
			require.NoError(b, err)
		})
	})
	b.Run("oracle", func(b *testing.B) {
		run(b, func(pool *pgxpool.Pool) {
			reapertest.One[[]byte](b, pool, `select fn_job_reap_stale_leases_dry_run($1)`, benchBatch)
		})
	})
}
