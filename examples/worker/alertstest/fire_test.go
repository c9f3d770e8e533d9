package alertstest_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// healthy are three hours of a worker whose queue has no trouble: now and then a worker
// is stopped hard, its jobs are reaped, and a job uses up its attempts.
var healthy = map[string]string{
	`leasereaper_pass_seconds_count{job="shop",instance="a",result="idle",source="loop"}`:    "0+2x180",
	`leasereaper_pass_seconds_count{job="shop",instance="a",result="reaped",source="loop"}`:  "0x60 4x120",
	`leasereaper_pass_seconds_count{job="shop",instance="a",result="refused",source="loop"}`: "0x180",
	`leasereaper_pass_seconds_count{job="shop",instance="a",result="error",source="loop"}`:   "0x90 1x90",
	`leasereaper_pass_seconds_count{job="shop",instance="a",result="idle",source="job"}`:     "0x180",
	`leasereaper_pass_seconds_count{job="shop",instance="a",result="error",source="job"}`:    "0x180",

	`leasereaper_reaped_total{job="shop",instance="a",outcome="reset_to_retry_waiting",kind="send",source="loop"}`: "0x60 4x120",
	`leasereaper_reaped_total{job="shop",instance="a",outcome="moved_to_dead_letter",kind="send",source="loop"}`:   "0x60 1x120",
	`leasereaper_reaped_total{job="shop",instance="a",outcome="reset_to_retry_waiting",kind="send",source="job"}`:  "0x180",
	`leasereaper_failures_total{job="shop",instance="a",source="loop"}`:                                            "0x180",

	`leasereaper_stale_leases{job="shop",instance="a"}`:           "0x60 4 0x120",
	`leasereaper_oldest_overdue_seconds{job="shop",instance="a"}`: "0x60 20 0x120",
	`leasereaper_database_up{job="shop",instance="a"}`:            "1x100 0 1x80",

	`leasereaper_gate_open{job="shop",instance="a",gate="queue.lease.reaper_enabled"}`:      "1x180",
	`leasereaper_gate_open{job="shop",instance="a",gate="queue.lease.reaper_dry_run_only"}`: "1x180",
	`leasereaper_gate_open{job="shop",instance="a",gate="queue.lease.reaper_window_until"}`: "1x180",

	`worker_jobs_total{job="shop",instance="a",outcome="succeeded",kind="send"}`: "0+60x180",
	`worker_jobs_total{job="shop",instance="a",outcome="buried",kind="send"}`:    "0+0.02x180",
	`worker_jobs_total{job="shop",instance="a",outcome="lost",kind="send"}`:      "0x100 1x80",
	`worker_jobs_total{job="shop",instance="a",outcome="unknown",kind="send"}`:   "0x180",
}

// An alert that does not fire is noticed in an incident; one that fires without a reason
// is ignored in the next.
func TestTheAlertsFireOnTroubleAlone(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		differs map[string]string // from a healthy worker
		fires   []string
	}{
		"nothing is wrong": {nil, nil},
		"a job waits while others are reaped": {map[string]string{
			`leasereaper_oldest_overdue_seconds{job="shop",instance="a"}`:                                                  "0x60 0+60x120",
			`leasereaper_stale_leases{job="shop",instance="a"}`:                                                            "0x60 1x120",
			`leasereaper_reaped_total{job="shop",instance="a",outcome="reset_to_retry_waiting",kind="send",source="loop"}`: "0+1x180",
		}, []string{"LeaseReaperOverdue"}},
		"a job waits for some minutes": {map[string]string{
			`leasereaper_oldest_overdue_seconds{job="shop",instance="a"}`: "0x60 0+60x9 0x110",
			`leasereaper_stale_leases{job="shop",instance="a"}`:           "0x60 1x9 0x110",
		}, nil},
		"nobody reaps": {map[string]string{
			`leasereaper_oldest_overdue_seconds{job="shop",instance="a"}`: "0x60 0+60x120",
			`leasereaper_stale_leases{job="shop",instance="a"}`:           "0x60 0+2x120",
		}, []string{"LeaseReaperOverdue", "LeaseReaperNobodyReaps"}},
		"a fleet of workers dies": {map[string]string{
			`leasereaper_stale_leases{job="shop",instance="a"}`:                                                            "0x60 5000-500x10 0x110",
			`leasereaper_reaped_total{job="shop",instance="a",outcome="reset_to_retry_waiting",kind="send",source="loop"}`: "0x60 0+500x10 5000x110",
		}, []string{"LeaseReaperBacklog", "LeaseReaperManyReaped"}},
		"the loop hangs": {map[string]string{
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="idle",source="loop"}`:  "0+2x60 120x120",
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="error",source="loop"}`: "0x180",
		}, []string{"LeaseReaperNoPass"}},
		"no worker exports metrics any more": {map[string]string{
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="idle",source="loop"}`:    "0+2x60 _x120",
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="reaped",source="loop"}`:  "0x60 _x120",
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="refused",source="loop"}`: "0x60 _x120",
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="error",source="loop"}`:   "0x60 _x120",
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="idle",source="job"}`:     "0x60 _x120",
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="error",source="job"}`:    "0x60 _x120",
		}, []string{"LeaseReaperNoPass"}},
		"one of two workers cannot reap": {map[string]string{
			`leasereaper_pass_seconds_count{job="shop",instance="b",result="idle",source="loop"}`:  "0+2x60 120x120",
			`leasereaper_pass_seconds_count{job="shop",instance="b",result="error",source="loop"}`: "0x60 0+2x120",
		}, []string{"LeaseReaperPassesFail"}},
		"the reap job fails and the watchdog reaps": {map[string]string{
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="error",source="job"}`: "0x60 0+2x120",
		}, []string{"LeaseReaperPassesFail", "LeaseReaperWatchdogReaps"}},
		"a pass fails now and then": {map[string]string{
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="error",source="loop"}`: "0+1x180",
		}, nil},
		"the database is away": {map[string]string{
			`leasereaper_database_up{job="shop",instance="a"}`: "1x60 0x120",
		}, []string{"LeaseReaperDatabaseDown"}},
		"a constraint rejects a job at each try": {map[string]string{
			`leasereaper_failures_total{job="shop",instance="a",source="loop"}`: "0x60 1x10 2x10 3x100",
		}, []string{"LeaseReaperJobsRejected"}},
		"jobs of a kind kill their workers": {map[string]string{
			`leasereaper_reaped_total{job="shop",instance="a",outcome="moved_to_dead_letter",kind="send",source="loop"}`: "0x60 0+1x120",
		}, []string{"LeaseReaperDeadLetters"}},
		"jobs of a kind fail for the last time": {map[string]string{
			`worker_jobs_total{job="shop",instance="a",outcome="buried",kind="send"}`: "0x60 0+1x120",
		}, []string{"LeaseReaperDeadLetters"}},
		"few jobs of each of two kinds die": {map[string]string{
			`worker_jobs_total{job="shop",instance="a",outcome="buried",kind="send"}`:   "0x60 0+0.1x120",
			`worker_jobs_total{job="shop",instance="a",outcome="buried",kind="resize"}`: "0x60 0+0.1x120",
		}, nil},
		"a gate stays closed": {map[string]string{
			`leasereaper_gate_open{job="shop",instance="a",gate="queue.lease.reaper_enabled"}`: "1x60 0x120",
		}, []string{"LeaseReaperGateClosed"}},
		"a window has ended": {map[string]string{
			`leasereaper_gate_open{job="shop",instance="a",gate="queue.lease.reaper_window_until"}`: "1x60 0x120",
		}, []string{"LeaseReaperGateClosed"}},
		"a gate is closed for half an hour": {map[string]string{
			`leasereaper_gate_open{job="shop",instance="a",gate="queue.lease.reaper_enabled"}`: "1x60 0x30 1x90",
		}, nil},
		"the watchdog reaps instead of the reap job": {map[string]string{
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="idle",source="job"}`:                           "0+12x180",
			`leasereaper_reaped_total{job="shop",instance="a",outcome="reset_to_retry_waiting",kind="send",source="loop"}`: "0x60 4x120",
		}, []string{"LeaseReaperWatchdogReaps"}},
		"the reap job reaps": {map[string]string{
			`leasereaper_pass_seconds_count{job="shop",instance="a",result="idle",source="job"}`:                           "0+12x180",
			`leasereaper_reaped_total{job="shop",instance="a",outcome="reset_to_retry_waiting",kind="send",source="job"}`:  "0x60 4x120",
			`leasereaper_reaped_total{job="shop",instance="a",outcome="reset_to_retry_waiting",kind="send",source="loop"}`: "0x180",
			`leasereaper_reaped_total{job="shop",instance="a",outcome="moved_to_dead_letter",kind="send",source="loop"}`:   "0x180",
		}, nil},
		"leases are too short": {map[string]string{
			`worker_jobs_total{job="shop",instance="a",outcome="lost",kind="send"}`: "0x60 0+1x120",
		}, []string{"WorkerLeasesLost"}},
		"the connection breaks at a job's end": {map[string]string{
			`worker_jobs_total{job="shop",instance="a",outcome="unknown",kind="send"}`: "0x60 1x120",
		}, []string{"WorkerOutcomeUnknown"}},
	}
	proved := map[string]bool{}
	for name, test := range tests {
		for _, alert := range test.fires {
			proved[alert] = true
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := maps.Clone(healthy)
			maps.Copy(written, test.differs)
			db := load(t, written)
			var fired []string
			for _, rule := range rules(t) {
				if db.fires(t, rule) {
					fired = append(fired, rule.Alert)
				}
			}
			require.ElementsMatch(t, test.fires, fired)
		})
	}
	for _, rule := range rules(t) {
		require.True(t, proved[rule.Alert], "no row shows that %s fires", rule.Alert)
	}
}
