package graphileworker_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/examples/queues/graphileworker"
	"github.com/lease-governance/leasereaper/examples/queues/internal/library"
)

// longest is how long a job may run in these tests.
const longest = 10 * time.Minute

// A worker is killed. Without the reaper, its job waits for four hours, and so do all
// other jobs of its named queue.
func TestAnotherWorkerFinishesALostJob(t *testing.T) {
	t.Parallel()

	for name, queue := range map[string]string{
		"on its own":                "",
		"in a queue that is locked": "mails",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := open(t)
			id := loseAJob(t, pool, 2, queue)

			require.Equal(t, 1, library.Reap(t, pool, graphileworker.Config(longest)).ResetCount)
			require.Equal(t, 1, library.One[int](t, pool,
				`select attempts from graphile_worker._private_jobs`), "graphile-worker has counted the lost attempt")
			start(t, pool, finish)
			requireFinished(t, pool, id)
		})
	}
}

// requireFinished waits until a job is gone, as finished jobs are.
func requireFinished(t *testing.T, pool *pgxpool.Pool, id int64) {
	t.Helper()
	library.Eventually(t, pool, `select not exists (select from graphile_worker._private_jobs where id = $1)`, id)
}

// If the reaper unlocked a queue in which another worker runs a job, two jobs of that
// queue would run at once.
func TestAQueueInWhichAJobRunsStaysLocked(t *testing.T) {
	t.Parallel()
	pool := open(t)
	loseAJob(t, pool, 2, "mails")
	add(t, pool, 2, "mails")
	library.Exec(t, pool, `update graphile_worker._private_jobs
		set locked_at = now(), locked_by = 'another' where locked_at is null`)

	require.Equal(t, 1, library.Reap(t, pool, graphileworker.Config(longest)).ResetCount)
	require.False(t, library.One[bool](t, pool, `select is_available from graphile_worker._private_job_queues`))
}

// Without a maximum, a job that kills its worker is given to one worker after the other.
// A dead job must look as graphile-worker's own do, and come back by its own means.
func TestALostJobWithoutAttemptsIsDead(t *testing.T) {
	t.Parallel()
	pool := open(t)
	failed := add(t, pool, 1, "mails")
	failing := start(t, pool, fail)
	library.Eventually(t, pool, `select last_error is not null from graphile_worker._private_jobs where id = $1`, failed)
	failing.Kill()
	id := loseAJob(t, pool, 1, "mails")

	require.Equal(t, 1, library.Reap(t, pool, graphileworker.Config(longest)).DeadLetterCount)
	const table = "graphile_worker._private_jobs"
	require.Equal(t, library.Shape(t, pool, table, strconv.FormatInt(failed, 10)),
		library.Shape(t, pool, table, strconv.FormatInt(id, 10)))
	require.False(t, library.One[bool](t, pool,
		`select is_available from graphile_worker._private_jobs where id = $1`, id))
	require.True(t, library.One[bool](t, pool, `select is_available from graphile_worker._private_job_queues`))

	library.Run(t, pool, library.Node(t, script, "reschedule", strconv.FormatInt(id, 10)))
	start(t, pool, finish)
	requireFinished(t, pool, id)
}

// No state tells dead jobs from jobs that wait. If the mapping did not, a redrive would
// start waiting jobs early, and a purge would delete them.
func TestADeadJobIsRedriven(t *testing.T) {
	t.Parallel()
	pool := open(t)
	add(t, pool, 1, "")
	library.Exec(t, pool, `update graphile_worker._private_jobs set run_at = now() + interval '1 day'`)
	id := loseAJob(t, pool, 1, "")
	require.Equal(t, 1, library.Reap(t, pool, graphileworker.Config(longest)).DeadLetterCount)

	result, err := deadletter.Redrive(t.Context(), pool, graphileworker.Letters(), "operator", deadletter.Filter{}, 10)
	require.NoError(t, err)
	require.Equal(t, 1, result.RedrivenCount)
	start(t, pool, finish)
	requireFinished(t, pool, id)
}

// A job that has not run for as long as it may is given to a second worker, and runs
// twice at once.
func TestARunningJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool := open(t)
	loseAJob(t, pool, 2, "")
	library.Exec(t, pool, `update graphile_worker._private_jobs set locked_at = now() - interval '9 minutes'`)

	require.Empty(t, library.Reap(t, pool, graphileworker.Config(longest)).Actions)
}

// The table is private, so a new version may rename what the mapping names.
func TestTheMappingFits(t *testing.T) {
	t.Parallel()
	pool := open(t)
	loseAJob(t, pool, 2, "")

	library.RequireFit(t, pool, graphileworker.Config(longest))
}
