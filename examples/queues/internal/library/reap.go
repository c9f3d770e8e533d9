package library

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// Open returns a reaper with open gates and no backoff, so that reset jobs can be claimed
// at once.
func Open(t testing.TB, pool *pgxpool.Pool, cfg reaper.Config) *reaper.Reaper {
	t.Helper()
	cfg.Gates = gates.Static{SubstrateEnabled: true, ReaperEnabled: true}
	cfg.Backoff = backoff.PolicyFunc(func(int, int64) int64 { return 0 })
	r, err := reaper.New(pool, cfg)
	require.NoError(t, err)
	return r
}

// Reap applies once, and fails the test if a job was rejected.
func Reap(t testing.TB, pool *pgxpool.Pool, cfg reaper.Config) *reaper.ApplyResult {
	t.Helper()
	result, err := Open(t, pool, cfg).Apply(t.Context(), "test-reaper", 100)
	require.NoError(t, err)
	require.False(t, result.Refused, result.Reason)
	require.Empty(t, result.Failures)
	return result
}

// RequireFit fails the test if Verify or Rehearse reports an error.
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

// Shape tells for each column of a row whether it is NULL. The tests compare a job that
// the reaper moved with one that the library ended itself.
func Shape(t testing.TB, db DB, table, id string) map[string]bool {
	t.Helper()
	return One[map[string]bool](t, db,
		`select jsonb_object_agg(e.name, e.value = 'null')
		from `+table+` as q, jsonb_each(to_jsonb(q)) as e(name, value) where q.id::text = $1`, id)
}
