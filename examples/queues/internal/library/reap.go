package library

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// Open returns the reaper of a library's tables, with open gates, that gives jobs back
// without a wait.
func Open(t testing.TB, pool *pgxpool.Pool, cfg reaper.Config) *reaper.Reaper {
	t.Helper()
	cfg.Gates = gates.Static{SubstrateEnabled: true, ReaperEnabled: true}
	cfg.Backoff = backoff.PolicyFunc(func(int, int64) int64 { return 0 })
	r, err := reaper.New(pool, cfg)
	require.NoError(t, err)
	return r
}

// Reap reaps once. No job may fail.
func Reap(t testing.TB, pool *pgxpool.Pool, cfg reaper.Config) *reaper.ApplyResult {
	t.Helper()
	result, err := Open(t, pool, cfg).Apply(t.Context(), "test-reaper", 100)
	require.NoError(t, err)
	require.False(t, result.Refused, result.Reason)
	require.Empty(t, result.Failures)
	return result
}

// RequireFit wants Verify and Rehearse to find no error in a mapping.
func RequireFit(t testing.TB, pool *pgxpool.Pool, cfg reaper.Config) {
	t.Helper()
	r := Open(t, pool, cfg)
	for name, check := range map[string]func() (*reaper.Report, error){
		"verify":   func() (*reaper.Report, error) { return r.Verify(t.Context()) },
		"rehearse": func() (*reaper.Report, error) { return r.Rehearse(t.Context()) },
	} {
		report, err := check()
		require.NoError(t, err, name)
		for _, problem := range report.Problems {
			require.NotEqual(t, reaper.SeverityError, problem.Severity, "%s: %+v", name, problem)
		}
	}
}

// Shape says of each column of a row whether it is NULL. What a library does to a job
// and what the reaper does to one ought to look alike.
func Shape(t testing.TB, db DB, table, id string) map[string]bool {
	t.Helper()
	return One[map[string]bool](t, db,
		`select jsonb_object_agg(e.name, e.value = 'null')
		from `+table+` as q, jsonb_each(to_jsonb(q)) as e(name, value) where q.id::text = $1`, id)
}
