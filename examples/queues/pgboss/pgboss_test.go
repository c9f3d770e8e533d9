package pgboss_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/examples/queues/internal/library"
	"github.com/lease-governance/leasereaper/examples/queues/pgboss"
	"github.com/lease-governance/leasereaper/reaper"
)

// A worker is killed. Without the reaper, its job waits for a supervisor, which may have
// died with it.
func TestAnotherWorkerFinishesALostJob(t *testing.T) {
	t.Parallel()
	pool := open(t)
	id := loseAJob(t, pool, 1)

	require.Equal(t, 1, library.Reap(t, pool, pgboss.Config()).ResetCount)
	require.True(t, library.One[bool](t, pool,
		`select retry_count = 0 and started_on is not null from pgboss.job where id = $1`, id),
		"the next claim counts the retry")
	start(t, pool, finish)
	requireFinished(t, pool, id, 1)
}

func requireFinished(t *testing.T, pool *pgxpool.Pool, id string, retries int) {
	t.Helper()
	library.Eventually(t, pool, `select state = 'completed' from pgboss.job where id = $1`, id)
	require.Equal(t, retries, library.One[int](t, pool, `select retry_count from pgboss.job where id = $1`, id))
}

// pg-boss counts retries, not attempts. If the mapping mistook one for the other, a job
// that kills its workers would run once too often or too seldom.
func TestALostJobIsTriedAsOftenAsPgBossTriesIt(t *testing.T) {
	t.Parallel()
	pool := open(t)
	loseAJob(t, pool, 1)
	require.Equal(t, 1, library.Reap(t, pool, pgboss.Config()).ResetCount)
	lost := start(t, pool, hang)
	library.Eventually(t, pool, `select state = 'active' from pgboss.job where name = 'order'`)
	lost.Kill()
	library.Exec(t, pool, `update pgboss.job set started_on = now() - interval '1 day' where name = 'order'`)

	require.Equal(t, 1, library.Reap(t, pool, pgboss.Config()).DeadLetterCount)
}

// A dead job must look as pg-boss's own do, be copied to its dead-letter queue, and come
// back by pg-boss's own means.
func TestALostJobWithoutRetriesFails(t *testing.T) {
	t.Parallel()
	pool := open(t)
	failed := add(t, pool, 0)
	failing := start(t, pool, fail)
	library.Eventually(t, pool, `select exists (select from pgboss.job where id = $1 and state = 'failed')`, failed)
	failing.Kill()
	id := loseAJob(t, pool, 0)

	require.Equal(t, 1, library.Reap(t, pool, pgboss.Config()).DeadLetterCount)
	require.Equal(t, library.Shape(t, pool, "pgboss.job", failed), library.Shape(t, pool, "pgboss.job", id))
	require.Equal(t, library.Shape(t, pool, "pgboss.job", letter(t, pool, failed)),
		library.Shape(t, pool, "pgboss.job", letter(t, pool, id)))
	require.Contains(t, run(t, pool, "find", id), `"state":"failed"`)

	run(t, pool, "retry", id)
	start(t, pool, finish)
	requireFinished(t, pool, id, 1)
}

// letter is the one job in the dead-letter queue that stands for a dead one.
func letter(t *testing.T, pool *pgxpool.Pool, id string) string {
	t.Helper()
	return library.One[string](t, pool,
		`select id::text from pgboss.job where name = 'order-dead' and source_id = $1`, id)
}

// If a redrive left completed_on set, pg-boss would delete the job as an old one.
func TestAFailedJobIsRedriven(t *testing.T) {
	t.Parallel()
	pool := open(t)
	id := loseAJob(t, pool, 0)
	require.Equal(t, 1, library.Reap(t, pool, pgboss.Config()).DeadLetterCount)

	filter := deadletter.Filter{Kinds: []string{"order"}}
	result, err := deadletter.Redrive(t.Context(), pool, pgboss.Letters(), "operator", filter, 10)
	require.NoError(t, err)
	require.Equal(t, 1, result.RedrivenCount)
	require.True(t, library.One[bool](t, pool, `select completed_on is null from pgboss.job where id = $1`, id))
	start(t, pool, finish)
	library.Eventually(t, pool, `select state = 'completed' from pgboss.job where id = $1`, id)
}

// A job that has not run for as long as it may is given to a second worker, and runs
// twice at once. Each job has its own limit.
func TestARunningJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool := open(t)
	loseAJob(t, pool, 1)
	library.Exec(t, pool, `update pgboss.job set started_on = now() - interval '14 minutes' where name = 'order'`)
	require.Empty(t, library.Reap(t, pool, pgboss.Config()).Actions)

	library.Exec(t, pool, `update pgboss.job set expire_seconds = 600 where name = 'order'`)
	require.Equal(t, 1, library.Reap(t, pool, pgboss.Config()).ResetCount)
}

// A long job whose worker was killed would wait for hours until it expires. A job without
// heartbeats must be left alone: nobody can tell that its worker is dead.
func TestAJobWithoutHeartbeatsComesBackBeforeItExpires(t *testing.T) {
	t.Parallel()
	pool := open(t)
	loseAJob(t, pool, 1)
	library.Exec(t, pool, `update pgboss.job set started_on = now(), heartbeat_on = now() - interval '1 minute'
		where name = 'order'`)
	require.Empty(t, library.Reap(t, pool, pgboss.HeartbeatConfig()).Actions)

	library.Exec(t, pool, `update pgboss.job set heartbeat_seconds = 30 where name = 'order'`)
	require.Equal(t, 1, library.Reap(t, pool, pgboss.HeartbeatConfig()).ResetCount)
}

// A new version of pg-boss may rename what the mapping names.
func TestTheMappingFits(t *testing.T) {
	t.Parallel()

	for name, cfg := range map[string]reaper.Config{
		"expiry":     pgboss.Config(),
		"heartbeats": pgboss.HeartbeatConfig(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := open(t)
			loseAJob(t, pool, 1)

			library.RequireFit(t, pool, cfg)
		})
	}
}
