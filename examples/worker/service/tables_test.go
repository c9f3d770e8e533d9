package service_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/jobs"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/service"
)

// A dashboard that says something else than the tables is worse than none. Jobs
// that succeed, fail, die, and were left behind, in both modes.
func TestTheMetricsSayWhatTheTablesSay(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		reapAsJob bool
		source    string
	}{
		"with the loop":     {false, "loop"},
		"with the reap job": {true, "job"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			fill(t, pool)
			r := start(t, pool, quick(service.Config{
				Slots: 3, Lease: time.Minute,
				ReapAsJob: test.reapAsJob, ReapEvery: 20 * time.Millisecond, WatchdogGrace: time.Hour,
			}))

			want := []string{
				count("leasereaper_reaped_total", 4, "send_invoice", "moved_to_dead_letter", test.source),
				count("leasereaper_reaped_total", 7, "resize_image", "reset_to_retry_waiting", test.source),
				count("worker_jobs_total", 10+7, "resize_image", "succeeded", ""), // and those that were reset
				count("worker_jobs_total", 5, "charge_card", "succeeded", ""),
				count("worker_jobs_total", 3+5+3, "charge_card", "retried", ""), // once, or twice
				count("worker_jobs_total", 3, "charge_card", "buried", ""),
				"leasereaper_stale_leases 0",
				"leasereaper_oldest_overdue_seconds 0",
				"worker_jobs_running 0",
			}
			fixture.Eventually(t, pool, `select count(*) = 0 from job_queue
				where job_kind <> 'queue.lease.reap' and state not in ('succeeded', 'dead_letter')`)
			require.Eventually(t, func() bool { return missing(t, r, want) == "" }, fixture.Waiting, 50*time.Millisecond,
				"%s", missing(t, r, want))
			require.Equal(t, 22, fixture.One[int](t, pool, `select count(*) from worker_receipt`))
			require.Equal(t, 7, fixture.One[int](t, pool, `select count(*) from job_dead_letter`))
			require.NoError(t, r.stop())
		})
	}
}

// fill adds jobs of each fate.
func fill(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	add := func(n int, job queue.NewJob) {
		for range n {
			_, err := queue.Enqueue(t.Context(), pool, job)
			require.NoError(t, err)
		}
	}
	add(10, queue.NewJob{Kind: jobs.ResizeImage, Payload: jobs.Payload{}})
	add(5, queue.NewJob{Kind: jobs.ChargeCard, Payload: jobs.Payload{Declined: 1}})
	add(3, queue.NewJob{Kind: jobs.ChargeCard, Payload: jobs.Payload{Declined: 9}, MaxAttempts: 3})
	fixture.Exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until, attempts, max_attempts)
		select 'send_invoice', 'leased', 'dead', now() - interval '1 minute', 4, 5 from generate_series(1, 4)
		union all
		select 'resize_image', 'leased', 'dead', now() - interval '1 minute', 0, 5 from generate_series(1, 7)`)
}

// count is a line of the metrics.
func count(name string, n int, kind, outcome, source string) string {
	if source == "" {
		return fmt.Sprintf(`%s{kind=%q,outcome=%q} %d`, name, kind, outcome, n)
	}
	return fmt.Sprintf(`%s{kind=%q,outcome=%q,source=%q} %d`, name, kind, outcome, source, n)
}

// missing returns the wanted lines that the metrics do not have.
func missing(t *testing.T, r *running, want []string) string {
	t.Helper()
	_, body := r.get(t, "/metrics")
	var left []string
	for _, line := range want {
		if !strings.Contains("\n"+body+"\n", "\n"+line+"\n") {
			left = append(left, line)
		}
	}
	return strings.Join(left, "\n")
}
