package reaper_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// counted is a job before a reap and after it.
type counted struct {
	attempts, maximum, lost string // as SQL
	moved                   bool
	after                   string // attempts and lost leases, as they are stored
}

// What counts, what is counted, and when a job is moved. One that is moved a try too soon
// is lost work; one that is moved a try too late breaks the library's CHECK, or kills
// another worker.
func TestCountsOfAReap(t *testing.T) {
	t.Parallel()
	atClaim := reaper.Table{CountsAtClaim: true}
	lost := reaper.Table{Columns: reaper.Columns{LostLeases: "lost"}, MaxLostLeases: 3}
	both := reaper.Table{Columns: reaper.Columns{LostLeases: "lost"}, MaxLostLeases: 3, CountsAtClaim: true}
	constant := reaper.Table{Columns: reaper.Columns{MaxAttempts: reaper.None}, MaxAttempts: 4}
	retries := reaper.Table{ExtraAttempts: 1, MaxAttempts: 4}
	tests := map[string]struct {
		table reaper.Table
		jobs  map[string]counted
	}{
		"a reap counts": {reaper.Table{}, map[string]counted{
			"two left":         {"3", "5", "0", false, "4,0"},
			"one left":         {"4", "5", "0", true, "5,0"},
			"none left":        {"5", "5", "0", true, "6,0"},
			"no attempts":      {"null", "5", "null", false, "1,"},
			"no maximum":       {"2000000000", "null", "0", false, "2000000001,0"},
			"at the edge":      {"2147483647", "null", "0", true, "2147483647,0"},
			"a lowest maximum": {"0", "-2147483648", "0", true, "1,0"},
			"negative":         {"-3", "0", "0", false, "-2,0"},
		}},
		"the claim has counted": {atClaim, map[string]counted{
			"one left":      {"4", "5", "0", false, "4,0"},
			"none left":     {"5", "5", "0", true, "5,0"},
			"more than all": {"7", "5", "0", true, "7,0"},
			"no attempts":   {"null", "5", "null", false, ","},
			"none allowed":  {"null", "0", "0", true, ",0"},
			"no maximum":    {"2147483647", "null", "0", false, "2147483647,0"},
			"at the edge":   {"2147483647", "2147483647", "0", true, "2147483647,0"},
		}},
		"lost leases are counted": {lost, map[string]counted{
			"the first":              {"4", "5", "null", false, "4,1"},
			"more attempts than all": {"9", "5", "0", false, "9,1"},
			"the last but one":       {"0", "5", "1", false, "0,2"},
			"the last":               {"0", "5", "2", true, "0,3"},
			"one too many":           {"0", "5", "3", true, "0,4"},
			"at the edge":            {"0", "5", "32767", true, "0,32767"},
			"no attempts":            {"null", "5", "0", false, ",1"},
		}},
		"lost leases are counted, and the claim has counted": {both, map[string]counted{
			"given back":               {"4", "5", "null", false, "3,1"},
			"the last try, given back": {"5", "5", "0", false, "4,1"},
			"nothing to give back":     {"0", "5", "0", false, "0,1"},
			"less than nothing":        {"-4", "5", "0", false, "0,1"},
			"no attempts":              {"null", "5", "0", false, "0,1"},
			"moved, and kept":          {"2", "5", "2", true, "2,3"},
		}},
		"a maximum for all": {constant, map[string]counted{
			"two left": {"2", "1", "0", false, "3,0"},
			"one left": {"3", "100", "0", true, "4,0"},
		}},
		"a column of retries, and a maximum where it is NULL": {retries, map[string]counted{
			"two left":                {"4", "5", "0", false, "5,0"},
			"one left":                {"5", "5", "0", true, "6,0"},
			"two left of the rest":    {"2", "null", "0", false, "3,0"},
			"one left of the rest":    {"3", "null", "0", true, "4,0"},
			"as many as can be":       {"2147483645", "2147483647", "0", false, "2147483646,0"},
			"fewer than none":         {"0", "-1", "0", true, "1,0"},
			"the fewest":              {"0", "-2147483648", "0", true, "1,0"},
			"at the edge of attempts": {"2147483647", "2147483647", "0", true, "2147483647,0"},
		}},
	}
	for name, test := range tests {
		for what, job := range test.jobs {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				requireCounted(t, test.table, job)
			})
		}
	}
}

// requireCounted reaps a job in each way, and finds the same each time.
func requireCounted(t *testing.T, table reaper.Table, job counted) {
	t.Helper()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `alter table job_queue add lost smallint, alter attempts drop not null, alter max_attempts drop not null;
		alter table job_dead_letter alter max_attempts type bigint`)
	for _, planned := range []bool{false, true} {
		for _, hook := range []bool{false, true} {
			reapertest.Exec(t, pool, fmt.Sprintf(`truncate job_queue, job_dead_letter; insert into job_queue
				(job_kind, state, lease_until, attempts, max_attempts, lost)
				values ('k', 'leased', now() - interval '1 s', %s, %s, %s)`, job.attempts, job.maximum, job.lost))
			cfg := reaper.Config{Queue: table}
			if hook {
				cfg.OnApply = reapertest.NoHook
			}
			r := reapertest.New(t, pool, cfg)
			dryRun, err := r.DryRun(t.Context(), 10)
			require.NoError(t, err)
			result := applyOrPlan(t, r, planned, dryRun)

			require.Empty(t, result.Failures)
			require.Equal(t, job.moved, dryRun.Jobs[0].WouldAction == reaper.WouldMove)
			require.Equal(t, job.moved, dryRun.MoveCount == 1)
			require.Equal(t, job.moved, result.DeadLetterCount == 1)
			require.Equal(t, job.after, reapertest.One[string](t, pool, `select coalesce(attempts::text, '') || ',' || coalesce(lost::text, '') from job_queue`))
			attempts := reapertest.One[int](t, pool, `select coalesce(attempts, 0) from job_queue`)
			require.Equal(t, attempts, result.Actions[0].Attempts)
			if job.moved {
				require.Contains(t, string(result.Actions[0].DeadLetter.Document), fmt.Sprintf(`"attempts":%d`, attempts))
				require.Equal(t, attempts, reapertest.One[int](t, pool, `select attempts from job_dead_letter`))
				require.Equal(t, job.after[len(job.after)-1:], reapertest.One[string](t, pool, `select right(job ->> 'lost', 1) from job_dead_letter`))
			}
		}
	}
}

// The wait grows with what is counted, not with what a worker's own errors have used up.
func TestTheBackoffGoesByTheCount(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		table reaper.Table
		wait  int64
	}{
		"a reap counts":             {reaper.Table{}, 40},
		"the claim has counted":     {reaper.Table{CountsAtClaim: true}, 20},
		"lost leases":               {reaper.Table{Columns: reaper.Columns{LostLeases: "lost"}, MaxLostLeases: 9}, 160},
		"lost leases and the claim": {reaper.Table{Columns: reaper.Columns{LostLeases: "lost"}, MaxLostLeases: 9, CountsAtClaim: true}, 160},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, `alter table job_queue add lost bigint default 4`)
			reapertest.Stale(t, pool, "k", 1, 2, 9)

			result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{Queue: test.table}), 10)

			require.Equal(t, test.wait, result.Actions[0].BackoffSec)
		})
	}
}
