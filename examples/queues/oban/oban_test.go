package oban_test

import (
	_ "embed"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/examples/queues/internal/library"
	"github.com/lease-governance/leasereaper/examples/queues/oban"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

//go:embed schema.sql
var schema string

// longest is how long a job may run in these tests.
const longest = 10 * time.Minute

// open is a database with Oban's table. Oban's columns have no time zone, so the sessions
// have one that is far from UTC: a comparison in the session's zone would show.
func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Empty(t)
	library.Exec(t, pool, schema)
	return pgtest.Connect(t, pool, func(config *pgxpool.Config) {
		config.ConnConfig.RuntimeParams["timezone"] = "Pacific/Auckland"
	})
}

// add adds a job, and returns its id.
func add(t *testing.T, pool *pgxpool.Pool, maxAttempts int) int64 {
	t.Helper()
	return library.One[int64](t, pool,
		`insert into oban_jobs (worker, max_attempts) values ('Shop.Order', $1) returning id`, maxAttempts)
}

// claim claims the next job as Oban does.
func claim(t *testing.T, pool *pgxpool.Pool) int64 {
	t.Helper()
	library.Exec(t, pool, sqlStage)
	return library.One[int64](t, pool, sqlClaim, "default", 1, "shop@node1")
}

// loseAJob adds a job, claims it, and dates the claim back, so that the lease has expired.
func loseAJob(t *testing.T, pool *pgxpool.Pool, maxAttempts int) int64 {
	t.Helper()
	id := add(t, pool, maxAttempts)
	require.Equal(t, id, claim(t, pool))
	age(t, pool, id, "11 minutes")
	return id
}

// age dates the start of a job back by an interval.
func age(t *testing.T, pool *pgxpool.Pool, id int64, interval string) {
	t.Helper()
	library.Exec(t, pool, `update oban_jobs set attempted_at = timezone('UTC', now()) - $2::interval where id = $1`,
		id, interval)
}

// A node dies. Without the reaper, its job waits for the Lifeline plugin, which gives it
// back after an hour if it is installed.
func TestAnotherNodeFinishesALostJob(t *testing.T) {
	t.Parallel()
	pool := open(t)
	id := loseAJob(t, pool, 2)

	require.Equal(t, 1, library.Reap(t, pool, oban.Config(longest)).ResetCount)
	require.True(t, library.One[bool](t, pool, `select state = 'retryable' and attempt = 1
		and attempted_at is not null and cardinality(attempted_by) = 2 from oban_jobs`))
	require.Equal(t, id, claim(t, pool))
	library.Exec(t, pool, sqlComplete, id)
	require.Equal(t, 2, library.One[int](t, pool, `select attempt from oban_jobs`))
}

// Without a maximum, a job that kills its node is given to one node after the other. A
// dead job must look as Oban's own do, and come back by Oban's own means.
func TestALostJobWithoutAttemptsIsDiscarded(t *testing.T) {
	t.Parallel()
	pool := open(t)
	discarded := add(t, pool, 1)
	require.Equal(t, discarded, claim(t, pool))
	library.Exec(t, pool, sqlDiscard, discarded)
	id := loseAJob(t, pool, 1)

	require.Equal(t, 1, library.Reap(t, pool, oban.Config(longest)).DeadLetterCount)
	require.Equal(t, library.Shape(t, pool, "oban_jobs", strconv.FormatInt(discarded, 10)),
		library.Shape(t, pool, "oban_jobs", strconv.FormatInt(id, 10)))
	require.True(t, library.One[bool](t, pool, `select state = 'discarded' and attempt = 1
		and discarded_at between attempted_at + interval '11 minutes' and attempted_at + interval '12 minutes'
		from oban_jobs where id = $1`, id), "discarded_at is in UTC")

	library.Exec(t, pool, sqlRetry, id)
	require.Equal(t, id, claim(t, pool))
}

// If a redrive left discarded_at set, the job would look discarded to whoever reads it.
func TestADiscardedJobIsRedriven(t *testing.T) {
	t.Parallel()
	pool := open(t)
	id := loseAJob(t, pool, 1)
	require.Equal(t, 1, library.Reap(t, pool, oban.Config(longest)).DeadLetterCount)

	result, err := deadletter.Redrive(t.Context(), pool, oban.Letters(), "operator", deadletter.Filter{}, 10)
	require.NoError(t, err)
	require.Equal(t, 1, result.RedrivenCount)
	require.True(t, library.One[bool](t, pool, `select discarded_at is null from oban_jobs`))
	require.Equal(t, id, claim(t, pool))
}

// A job that has not run for as long as it may is given to a second node, and runs twice
// at once. In the session's zone every job would, as soon as it runs.
func TestARunningJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool := open(t)
	id := loseAJob(t, pool, 2)
	age(t, pool, id, "9 minutes")

	require.Empty(t, library.Reap(t, pool, oban.Config(longest)).Actions)
}

// A job with one attempt is dead after one deployment, though it has not failed once. With
// lost leases counted apart it is not. Oban leaves a further column alone.
func TestADeploymentCostsNoAttempt(t *testing.T) {
	t.Parallel()
	pool := open(t)
	library.Exec(t, pool, `alter table oban_jobs add column lost_leases integer`)
	cfg := oban.Config(longest)
	cfg.Queue.Columns.LostLeases, cfg.Queue.MaxLostLeases = "lost_leases", 3
	id := loseAJob(t, pool, 1)

	for lost := 1; lost < 3; lost++ {
		require.Equal(t, 1, library.Reap(t, pool, cfg).ResetCount)
		require.Equal(t, []int{0, lost}, library.One[[]int](t, pool, `select array[attempt, lost_leases] from oban_jobs`))
		require.Equal(t, id, claim(t, pool))
		age(t, pool, id, "11 minutes")
	}
	require.Equal(t, 1, library.Reap(t, pool, cfg).DeadLetterCount)
}

// The mapping must name what Oban's table has.
func TestTheMappingFits(t *testing.T) {
	t.Parallel()
	pool := open(t)
	loseAJob(t, pool, 2)

	library.RequireFit(t, pool, oban.Config(longest))
}
