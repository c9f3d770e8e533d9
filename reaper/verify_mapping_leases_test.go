package reaper_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// oddLeases are leases that no reaper will ever find stale, or not for a long time.
var oddLeases = map[string]struct{ library, sql, code string }{
	"a start that is NULL":             {"river", `update jobs set attempted_at = null`, reaper.CodeLeaseEndless},
	"a start at infinity":              {"river", `update jobs set attempted_at = 'infinity'`, reaper.CodeLeaseInfinite},
	"a start next year":                {"river", `update jobs set attempted_at = now() + interval '1 year'`, reaper.CodeLeaseFar},
	"a start in UTC that is NULL":      {"oban", `update jobs set attempted_at = null`, reaper.CodeLeaseEndless},
	"a start in UTC at infinity":       {"oban", `update jobs set attempted_at = 'infinity'`, reaper.CodeLeaseInfinite},
	"a start in UTC next year":         {"oban", `update jobs set attempted_at = now() + interval '1 year'`, reaper.CodeLeaseFar},
	"a lock at infinity":               {"graphile-worker", `update jobs set locked_at = 'infinity'`, reaper.CodeLeaseInfinite},
	"a lock next year":                 {"delayed_job", `update jobs set locked_at = now() + interval '1 year'`, reaper.CodeLeaseFar},
	"an end that is NULL":              {"a team's own", `update "Jobs" set locked_until = null`, reaper.CodeLeaseEndless},
	"no start and seconds":             {"pg-boss", `update jobs set started_on = null`, reaper.CodeLeaseEndless},
	"a start at infinity and seconds":  {"pg-boss", `update jobs set started_on = 'infinity'`, reaper.CodeLeaseEndless},
	"seconds that are NULL":            {"pg-boss", `update jobs set expire_seconds = null`, reaper.CodeLeaseEndless},
	"seconds below zero":               {"pg-boss", `update jobs set expire_seconds = -1`, reaper.CodeLeaseEndless},
	"seconds that are infinite":        {"pg-boss", `update jobs set expire_seconds = 'infinity'`, reaper.CodeLeaseEndless},
	"seconds that are no number":       {"pg-boss", `update jobs set expire_seconds = 'nan'`, reaper.CodeLeaseEndless},
	"seconds out of range":             {"pg-boss", `update jobs set expire_seconds = 1e12`, reaper.CodeLeaseEndless},
	"seconds that are a hundred years": {"pg-boss", `update jobs set expire_seconds = 3e9`, reaper.CodeLeaseFar},
}

// Such a job hangs for good, and no reaper says so. The fix gives it an end.
func TestVerifyCountsLeasesOfLibrariesThatDoNotEnd(t *testing.T) {
	t.Parallel()
	for name, lease := range oddLeases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries[lease.library]
			pool := library.openSound(t, lease.library)
			if lease.library == "pg-boss" {
				reapertest.Exec(t, pool, `alter table jobs alter expire_seconds type double precision, alter expire_seconds drop not null`)
			}
			library.add(t, pool, "young", 3, library.young, 1)
			reapertest.Exec(t, pool, lease.sql)

			problem := reapertest.OnlyProblem(t, pool, library.config())

			require.Equal(t, []string{lease.code, reaper.SeverityWarning}, []string{problem.Code, problem.Severity})
			require.Equal(t, library.object(""), problem.Object)
			require.Contains(t, problem.Message, "3 leased jobs")
			reapertest.Exec(t, pool, problem.Fix)
			require.Empty(t, reapertest.Verify(t, pool, library.config()).Problems)
			require.Empty(t, reapertest.Apply(t, reapertest.New(t, pool, library.config()), 10).Actions, "their workers have an hour")
		})
	}
}

// A lease that is long because the mapping says so, and rows that are not the reaper's,
// are no anomalies.
func TestVerifyIsSilentOverLongLeasesAndRowsOfOthers(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		library, sql string
		length       time.Duration
	}{
		"a lease of a month":            {"river", `update jobs set attempted_at = now()`, 30 * 24 * time.Hour},
		"a lease of a month in UTC":     {"oban", `update jobs set attempted_at = now() at time zone 'utc'`, 30 * 24 * time.Hour},
		"failed jobs that stay locked":  {"delayed_job", `update jobs set locked_at = 'infinity', failed_at = now()`, 4 * time.Hour},
		"free jobs without a start":     {"river", `update jobs set attempted_at = null, state = 'available'`, time.Hour},
		"free jobs that keep their end": {"pg-boss", `update jobs set started_on = 'infinity', state = 'retry'`, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries[test.library]
			pool := library.openSound(t, test.library)
			library.add(t, pool, "young", 3, library.young, 1)
			reapertest.Exec(t, pool, test.sql)
			cfg := library.config()
			cfg.Queue.LeaseLength = test.length

			require.Empty(t, reapertest.Verify(t, pool, cfg).Problems)
		})
	}
}
