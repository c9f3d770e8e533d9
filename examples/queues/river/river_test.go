package river_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	mapping "github.com/lease-governance/leasereaper/examples/queues/river"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/examples/queues/internal/library"
)

// longest is how long a job may run in these tests.
const longest = 10 * time.Minute

// A worker is killed. Without the reaper, its job waits for River's rescuer, which gives
// it back after an hour.
func TestAnotherWorkerFinishesALostJob(t *testing.T) {
	t.Parallel()
	pool, client := open(t)
	id := loseAJob(t, pool, client, 2)

	require.Equal(t, 1, library.Reap(t, pool, mapping.Config(longest)).ResetCount)
	job, err := client.JobGet(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, rivertype.JobStateRetryable, job.State)
	require.Equal(t, 1, job.Attempt, "River has counted the lost attempt")
	require.Len(t, job.AttemptedBy, 1)
	require.NotNil(t, job.AttemptedAt)

	start(t, pool, finish)
	requireFinished(t, pool, id, 2)
}

// Without a maximum, a job that kills its worker is given to one worker after the other.
// Discarded otherwise than River's own, it could not be retried by River's means.
func TestALostJobWithoutAttemptsIsDiscarded(t *testing.T) {
	t.Parallel()
	pool, client := open(t)
	failed, err := client.Insert(t.Context(), order{}, &river.InsertOpts{MaxAttempts: 1})
	require.NoError(t, err)
	failing := start(t, pool, fail)
	library.Eventually(t, pool, `select state = 'discarded' from river_job where id = $1`, failed.Job.ID)
	failing.Kill()
	id := loseAJob(t, pool, client, 1)

	result := library.Reap(t, pool, mapping.Config(longest))
	require.Equal(t, 1, result.DeadLetterCount)
	require.Equal(t, strconv.FormatInt(id, 10), result.Actions[0].JobID)
	requireAlike(t, pool, failed.Job.ID, id)

	job, err := client.JobRetry(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, rivertype.JobStateAvailable, job.State)
	start(t, pool, finish)
	requireFinished(t, pool, id, 2)
}

// requireAlike compares a job that the reaper has moved with one that River has
// discarded. They differ only in errors, which the reaper does not write.
func requireAlike(t *testing.T, pool *pgxpool.Pool, discarded, moved int64) {
	t.Helper()
	want := library.Shape(t, pool, "river_job", strconv.FormatInt(discarded, 10))
	got := library.Shape(t, pool, "river_job", strconv.FormatInt(moved, 10))
	delete(want, "errors")
	delete(got, "errors")
	require.Equal(t, want, got)
}

func requireFinished(t *testing.T, pool *pgxpool.Pool, id int64, attempts int) {
	t.Helper()
	library.Eventually(t, pool, `select state = 'completed' from river_job where id = $1`, id)
	require.Equal(t, attempts, library.One[int](t, pool, `select attempt from river_job where id = $1`, id))
}

// If a redrive left finalized_at set, River's CHECK would reject every job.
func TestADiscardedJobIsRedriven(t *testing.T) {
	t.Parallel()
	pool, client := open(t)
	id := loseAJob(t, pool, client, 1)
	require.Equal(t, 1, library.Reap(t, pool, mapping.Config(longest)).DeadLetterCount)

	result, err := deadletter.Redrive(t.Context(), pool, mapping.Letters(), "operator", deadletter.Filter{}, 10)
	require.NoError(t, err)
	require.Equal(t, 1, result.RedrivenCount)
	start(t, pool, finish)
	requireFinished(t, pool, id, 1)
}

// A job that has not run for as long as it may is given to a second worker, and runs
// twice at once.
func TestARunningJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool, client := open(t)
	loseAJob(t, pool, client, 2)
	library.Exec(t, pool, `update river_job set attempted_at = now() - interval '9 minutes'`)

	require.Empty(t, library.Reap(t, pool, mapping.Config(longest)).Actions)
}

// A job with one attempt is dead after one deployment, though it has not failed once. With
// lost leases counted apart it is not; and River must go on with a column that it does not
// know.
func TestADeploymentCostsNoAttempt(t *testing.T) {
	t.Parallel()
	pool, client := open(t)
	library.Exec(t, pool, `alter table river_job add column lost_leases integer`)
	cfg := mapping.Config(longest)
	cfg.Queue.Columns.LostLeases, cfg.Queue.MaxLostLeases = "lost_leases", 3
	id := loseAJob(t, pool, client, 1)

	require.Equal(t, 1, library.Reap(t, pool, cfg).ResetCount)
	list, err := client.JobList(t.Context(), river.NewJobListParams().States(rivertype.JobStateRetryable))
	require.NoError(t, err)
	require.Len(t, list.Jobs, 1)
	require.Zero(t, list.Jobs[0].Attempt)
	require.Equal(t, 1, library.One[int](t, pool, `select lost_leases from river_job`))

	_, err = client.JobRetry(t.Context(), id)
	require.NoError(t, err)
	start(t, pool, finish)
	requireFinished(t, pool, id, 1)
}

// A new version of River may rename what the mapping names.
func TestTheMappingFits(t *testing.T) {
	t.Parallel()
	pool, client := open(t)
	loseAJob(t, pool, client, 2)

	library.RequireFit(t, pool, mapping.Config(longest))
}
