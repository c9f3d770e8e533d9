package reaper_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// The time from the end of a lease to the commit that gives its job back, by the
// database's clock, over 200 leases that end at scattered moments while Run
// waits with a MinInterval of 10 ms. The commit is dated by the transaction that
// sees it, so the figures are a round trip too high.
func BenchmarkRunLatency(b *testing.B) {
	const leases = 200
	pool := reapertest.OpenQueue(b)
	var lags []time.Duration
	for b.Loop() {
		reapertest.Exec(b, pool, `truncate job_queue`)
		reapertest.Exec(b, pool, `insert into job_queue (job_kind, state, lease_until)
			select 'kind', 'leased', now() + make_interval(secs => 0.5 + random() * 5) from generate_series(1, $1::int)`, leases)
		passes := make(chan []reaper.Action, leases)
		stop := reapertest.Run(b, reapertest.New(b, pool, reaper.Config{}), reaper.RunConfig{
			MinInterval: 10 * time.Millisecond, Settle: 1,
			OnPass: func(_ context.Context, p reaper.Pass) {
				if p.Err == nil && len(p.Result.Actions) > 0 {
					passes <- p.Result.Actions
				}
			},
		})
		for met := 0; met < leases; {
			actions := <-passes
			committed := reapertest.One[time.Time](b, pool, `select clock_timestamp()`)
			for _, action := range actions {
				lags = append(lags, committed.Sub(action.LeaseUntil))
			}
			met += len(actions)
		}
		stop()
	}
	slices.Sort(lags)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(lags[len(lags)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(lags[len(lags)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(lags[len(lags)-1].Microseconds())/1000, "ms-max")
}

// The queries of a minute in which nothing is due, at the defaults. It takes
// that minute.
func BenchmarkRunIdleMinute(b *testing.B) {
	pool := reapertest.OpenQueue(b)
	recorder := &reapertest.Recorder{}
	config := pool.Config().ConnConfig
	config.Tracer = recorder
	conn, err := pgx.ConnectConfig(b.Context(), config)
	require.NoError(b, err)
	passes := make(chan reaper.Pass, 10)
	stop := reapertest.Run(b, reapertest.New(b, conn, reaper.Config{}), reaper.RunConfig{
		Settle: 1, OnPass: func(_ context.Context, p reaper.Pass) { passes <- p },
	})
	<-passes // the first applies
	before := recorder.Count()
	<-time.After(time.Minute)
	b.ReportMetric(float64(recorder.Count()-before), "queries/minute")
	stop()
	require.NoError(b, conn.Close(context.WithoutCancel(b.Context())))
}
