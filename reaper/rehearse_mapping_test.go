package reaper_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A rehearsal must write what an apply over this mapping would write, find a row whatever
// there is, and leave no trace.
func TestRehearseOverLibraries(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ young, spent, live, reaped bool }{
		"stale jobs":     {young: true, spent: true},
		"only live jobs": {live: true},
		"free and dead":  {young: true, spent: true, reaped: true},
	}
	for name, library := range libraries {
		for what, test := range tests {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				pool := library.openSound(t, name)
				if test.young {
					library.add(t, pool, "young", 1, library.young, 1)
				}
				if test.spent {
					library.add(t, pool, "spent", 1, library.spent, 1)
				}
				if test.live {
					library.add(t, pool, "live", 1, library.young, -60)
				}
				r := reapertest.New(t, pool, library.config())
				if test.reaped {
					require.Len(t, reapertest.Apply(t, r, 10).Actions, 2)
				}
				before := library.contents(t, pool)

				report, err := r.Rehearse(t.Context())

				require.NoError(t, err)
				require.Empty(t, report.Problems)
				require.Equal(t, before, library.contents(t, pool))
			})
		}
	}
}

// contents is what the queue holds, and the version of each row.
func (l library) contents(t *testing.T, db reapertest.Execer) string {
	t.Helper()
	return reapertest.One[string](t, db, `select string_agg(q::text || q.xmin || q.ctid, ',' order by q.ctid) from `+l.object("")+` q`)
}

// A queue without a row of the reaper's proves nothing.
func TestRehearseOverLibrariesNeedsARow(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.openSound(t, name)
			if name == "delayed_job" { // a failed job is not the reaper's
				library.add(t, pool, "failed", 1, library.young, 1)
				reapertest.Exec(t, pool, `update jobs set failed_at = now()`)
			}

			report, err := reapertest.New(t, pool, library.config()).Rehearse(t.Context())

			require.NoError(t, err)
			require.Len(t, report.Problems, 1, report)
			require.Equal(t, reaper.CodeRehearsalEmpty, report.Problems[0].Code)
		})
	}
}

// A library's own constraint knows what its states go with. A mapping that leaves a
// column out has every move rejected, and Verify cannot know.
func TestRehearseReportsWhatALibraryRejects(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		library, sql   string
		change         func(*reaper.Table)
		problems       int
		act, code, say string
	}{
		"a move without its time":      {library: "river", change: onMoveOnly(reaper.Set{"attempted_at": reaper.Keep}), problems: 1, act: "The move", code: "23514", say: "jobs_check"},
		"a reset that must keep":       {library: "pg-boss", sql: `alter table jobs add constraint started check (state <> 'retry' or started_on is null)`, problems: 1, act: "The reset", code: "23514", say: "started"},
		"a value that is not foreseen": {library: "a team's own", sql: `alter table "Jobs" add constraint notes check ("{queue} "" Note"::int > -3 and lost < 100)`, problems: 1, act: "The reset", code: "23514", say: "notes"},
		"a mark that is taken":         {library: "graphile-worker", sql: `create unique index taken on jobs (flags); update jobs set flags = '{"dead": true}' where label = 'other'`, problems: 1, act: "The move", code: "23505", say: "taken"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries[test.library]
			pool := library.openSound(t, test.library)
			library.add(t, pool, "young", 1, library.young, 1)
			library.add(t, pool, "other", 1, library.young, 1)
			reapertest.Exec(t, pool, test.sql)
			cfg := library.config()
			if test.change != nil {
				test.change(&cfg.Queue)
			}

			report, err := reapertest.New(t, pool, cfg).Rehearse(t.Context())

			require.NoError(t, err)
			require.Len(t, report.Problems, test.problems, report)
			require.Equal(t, reaper.CodeRehearsalFailed, report.Problems[0].Code)
			for _, word := range []string{test.act, test.code, test.say} {
				require.Contains(t, report.Problems[0].Message, word)
			}
		})
	}
}

func onMoveOnly(set reaper.Set) func(*reaper.Table) {
	return func(t *reaper.Table) { t.OnMove = set }
}
