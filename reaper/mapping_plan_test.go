package reaper_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// An operator who applies a plan late must read that another reaper has reaped its jobs,
// reset or moved; not that they are finished.
func TestAPlanOfLibrariesKnowsWhatIsReaped(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			library.fill(t, pool)
			r := reapertest.New(t, pool, library.config())
			plan := review(t, r, 10)
			want := reaper.SkipReaped
			if library.cfg.Queue.Columns.LastError == reaper.None {
				want = reaper.SkipFinished // nothing tells who it was
			}
			require.Len(t, reapertest.Apply(t, r, 10).Actions, 5)

			result, err := r.ApplyPlan(t.Context(), reapertest.Actor, plan)

			require.NoError(t, err)
			require.Len(t, result.Skipped, 5)
			for _, skipped := range result.Skipped {
				require.Equal(t, want, skipped.Reason)
			}
			library.requireReaped(t, pool, 0)
		})
	}
}

// What workers do between the review of a plan and its apply stands.
func TestAPlanOfLibrariesLeavesWhatHasChanged(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ meanwhile, reason string }{
		"claimed again":         {`{attempts} = {attempts} + 1, {lease} = {lease} + interval '1 minute'`, reaper.SkipClaimed},
		"renewed":               {`{lease} = {lease} + interval '1 day'`, reaper.SkipRenewed},
		"one more attempt":      {`{attempts} = {attempts} + 1`, reaper.SkipChanged},
		"a start without a sum": {`{lease} = '294276-12-31 23:59:59Z'`, reaper.SkipRenewed},
		"a start at infinity":   {`{lease} = 'infinity'`, reaper.SkipRenewed},
	}
	for name, library := range libraries {
		for what, test := range tests {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				pool := library.open(t)
				library.add(t, pool, "young", 2, library.young, 5)
				r := reapertest.New(t, pool, library.config())
				plan := review(t, r, 10)
				columns := library.cfg.Queue.Columns
				attempts := columns.Attempts
				if attempts == "" {
					attempts = "attempts"
				}
				set := strings.NewReplacer("{attempts}", pgx.Identifier{attempts}.Sanitize(),
					"{lease}", pgx.Identifier{columns.LeaseUntil}.Sanitize()).Replace(test.meanwhile)
				reapertest.Exec(t, pool, `update `+library.config().Queue.Name.Sanitize()+` set `+set)
				before := rowsOf(t, pool)

				result, err := r.ApplyPlan(t.Context(), reapertest.Actor, plan)

				require.NoError(t, err)
				require.Empty(t, result.Actions)
				require.Len(t, result.Skipped, plan.StaleLeaseCount)
				require.Equal(t, test.reason, result.Skipped[0].Reason)
				require.Equal(t, before, rowsOf(t, pool))
			})
		}
	}
}

// rowsOf is every row of jobs.
func rowsOf(t *testing.T, db reapertest.Execer) string {
	t.Helper()
	return reapertest.One[string](t, db, `select coalesce(string_agg(q::text, ',' order by q::text), '') from jobs q`)
}
