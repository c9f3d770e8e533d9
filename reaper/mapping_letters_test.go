package reaper_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// store is where the queue's dead jobs are.
func (l library) store() deadletter.Store {
	cfg := l.config()
	_, inPlace := cfg.DeadLetter.(deadletter.InPlace)
	return deadletter.Store{Queue: cfg.Queue.DeadLetterQueue(), InPlace: inPlace, MovedAt: l.movedAt}
}

// bury fills the queue with free, leased and dead jobs.
func (l library) bury(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	l.fill(t, pool)
	require.Equal(t, 2, reapertest.Apply(t, reapertest.New(t, pool, l.config()), 100).DeadLetterCount)
	l.requireReaped(t, pool, 0)
}

// Of a queue that keeps its dead jobs, a purge removes those, and not one live job.
func TestLibrariesArePurgedOfDeadJobsAlone(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			library.bury(t, pool)
			all := deadletter.PurgeConfig{Unredriven: true}

			redriven, err := deadletter.Purge(t.Context(), pool, library.store(), 0, deadletter.PurgeConfig{})
			require.NoError(t, err)
			require.Zero(t, *redriven)
			if library.movedAt != "" {
				young, err := deadletter.Purge(t.Context(), pool, library.store(), time.Hour, all)
				require.NoError(t, err)
				require.Zero(t, *young)
			}
			library.requireReaped(t, pool, 0)
			purged, err := deadletter.Purge(t.Context(), pool, library.store(), 0, all)

			require.NoError(t, err)
			require.Equal(t, []int{2, 2, 0}, []int{purged.UnredrivenCount, purged.JobCount, purged.FailedCount})
			require.Equal(t, map[string]int{"young reset": 3, "live leased": 2}, library.seen(t, pool))
		})
	}
}

// A job that is sent back to its queue is as good as new, also for the library: it is no
// letter any more, and when its next worker dies the reaper takes it again.
func TestLibrariesDeadJobsAreRedriven(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			library.bury(t, pool)
			store, unredriven := library.store(), deadletter.Filter{Status: deadletter.StatusUnredriven}

			page, err := deadletter.ListWithJobs(t.Context(), pool, store, unredriven, 1)
			require.NoError(t, err)
			second, err := deadletter.List(t.Context(), pool, store, deadletter.Filter{After: page.Next}, 10)
			require.NoError(t, err)
			require.Len(t, second.Letters, 1)
			require.NotEqual(t, page.Letters[0].JobID, second.Letters[0].JobID)
			require.Equal(t, []int{library.moved, library.maximum}, []int{page.Letters[0].Attempts, page.Letters[0].MaxAttempts})
			require.Regexp(t, `"label": ?"spent"`, string(page.Letters[0].Job))
			result, err := deadletter.Redrive(t.Context(), pool, store, "operator", deadletter.Filter{}, 10)
			require.NoError(t, err)
			left, err := deadletter.List(t.Context(), pool, store, unredriven, 10)
			require.NoError(t, err)

			require.Equal(t, []int{2, 0, 0}, []int{result.RedrivenCount, result.SkippedCount, result.FailedCount}, result)
			require.Empty(t, left.Letters)
			require.Equal(t, map[string]int{"young reset": 3, "spent new": 2, "live leased": 2}, library.redriven(t, pool))
			reapertest.Exec(t, pool, library.claim)
			require.Equal(t, 5, reapertest.Apply(t, reapertest.New(t, pool, library.config()), 100).ResetCount)
		})
	}
}

// redriven is seen with redriven jobs as new.
func (l library) redriven(t *testing.T, pool *pgxpool.Pool) map[string]int {
	t.Helper()
	l.status = `case when ` + l.fresh + ` and label = 'spent' then 'new' else ` + l.status + ` end`
	return l.seen(t, pool)
}

// An operator reads the maximum that a job was moved at.
func TestALetterInPlaceShowsTheMaximumInForce(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "dead", 1, 5, 5)
	table := reaper.Table{ExtraAttempts: 1}
	reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{Queue: table, DeadLetter: deadletter.InPlace{}}), 10)

	page, err := deadletter.List(t.Context(), pool, deadletter.Store{Queue: table.DeadLetterQueue(), InPlace: true}, deadletter.Filter{}, 10)

	require.NoError(t, err)
	require.Len(t, page.Letters, 1)
	require.Equal(t, []int{6, 6}, []int{page.Letters[0].Attempts, page.Letters[0].MaxAttempts})
}

// Dead jobs of other reapers' stay out of sight, where Only parts a table.
func TestLettersInPlaceAreOfTheReapersOwnRows(t *testing.T) {
	t.Parallel()
	library := libraries["delayed_job"]
	pool := library.open(t)
	library.bury(t, pool)
	reapertest.Exec(t, pool, `update jobs set cron = true where id = (select min(id) from jobs where label = 'spent')`)

	page, err := deadletter.List(t.Context(), pool, library.store(), deadletter.Filter{}, 10)
	require.NoError(t, err)
	purged, err := deadletter.Purge(t.Context(), pool, library.store(), 0, deadletter.PurgeConfig{Unredriven: true})
	require.NoError(t, err)

	require.Len(t, page.Letters, 1)
	require.Equal(t, 1, purged.JobCount)
	require.Equal(t, map[string]int{"young reset": 3, "spent dead": 1, "live leased": 2}, library.seen(t, pool))
}

// A dead job without a time may be a minute old. It must not be purged as one of last year.
func TestALetterInPlaceWithoutATimeHasNoAge(t *testing.T) {
	t.Parallel()
	library := libraries["a team's own"]
	library.cfg.DeadLetter = deadletter.InPlace{}
	pool := library.open(t)
	library.fill(t, pool)
	require.Equal(t, 2, reapertest.Apply(t, reapertest.New(t, pool, library.config()), 100).DeadLetterCount)
	store := library.store()
	store.MovedAt = "run_at" // no move writes it
	old := deadletter.Filter{OlderThan: time.Hour}
	all := deadletter.PurgeConfig{Unredriven: true}

	page, err := deadletter.List(t.Context(), pool, store, old, 10)
	require.NoError(t, err)
	require.Empty(t, page.Letters)
	purged, err := deadletter.Purge(t.Context(), pool, store, time.Hour, all)
	require.NoError(t, err)
	require.Zero(t, *purged)
	reapertest.Exec(t, pool, `update "Jobs" set run_at = now() at time zone 'utc' - interval '2 hours' where st = 3 and "ID {queue}" % 2 = 0`)
	page, err = deadletter.List(t.Context(), pool, store, old, 10)
	require.NoError(t, err)
	require.Len(t, page.Letters, 1)
	purged, err = deadletter.Purge(t.Context(), pool, store, time.Hour, all)
	require.NoError(t, err)
	require.Equal(t, 1, purged.JobCount)
	purged, err = deadletter.Purge(t.Context(), pool, store, 0, all)
	require.NoError(t, err)
	require.Equal(t, 1, purged.JobCount)
}

// A time in the session's zone would make letters of this morning older than they are.
func TestLettersInPlaceRefuseTimesInTheSessionsZone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		movedAt string
		inUTC   bool
	}{
		"a column without a zone":                     {"timestamp", false},
		"a column with a zone where times are in UTC": {"timestamptz", true},
		"a date": {"date", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, `alter table job_queue add column dead_at `+test.movedAt)
			store := deadletter.Store{
				Queue: reaper.Table{TimesInUTC: test.inUTC}.DeadLetterQueue(), InPlace: true, MovedAt: "dead_at",
			}

			_, err := deadletter.List(t.Context(), pool, store, deadletter.Filter{}, 10)
			require.ErrorIs(t, err, deadletter.ErrQueue)
			_, err = deadletter.Redrive(t.Context(), pool, store, "operator", deadletter.Filter{}, 10)
			require.ErrorIs(t, err, deadletter.ErrQueue)
			_, err = deadletter.Purge(t.Context(), pool, store, 0, deadletter.PurgeConfig{Unredriven: true})
			require.ErrorIs(t, err, deadletter.ErrQueue)
		})
	}
}
