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

// A node dies, and its jobs wait for a supervisor, which may have died with it.
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

// A job that kills its worker each time is given to one worker after the other, once
// too often or once too seldom: pg-boss counts retries, not tries.
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

// A dead job is not in its dead-letter queue, where somebody waits for it.
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

// A redrive that leaves completed_on set: pg-boss deletes the job as an old one.
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

// A job that runs for as long as it may is given to a second worker. Each has its own
// length.
func TestARunningJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool := open(t)
	loseAJob(t, pool, 1)
	library.Exec(t, pool, `update pgboss.job set started_on = now() - interval '14 minutes' where name = 'order'`)
	require.Empty(t, library.Reap(t, pool, pgboss.Config()).Actions)

	library.Exec(t, pool, `update pgboss.job set expire_seconds = 600 where name = 'order'`)
	require.Equal(t, 1, library.Reap(t, pool, pgboss.Config()).ResetCount)
}

// A long job with heartbeats waits for hours after its worker has died, until it
// expires; one without is none of this reaper's.
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

// A mapping that names what pg-boss's table has no longer.
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
