package delayedjob_test

import (
	_ "embed"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/examples/queues/delayedjob"
	"github.com/lease-governance/leasereaper/examples/queues/internal/library"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

//go:embed schema.sql
var schema string

// longest is how long a job may run in these tests, and maxRunTime delayed_job's default
// for the time after which workers claim a locked job again.
const (
	longest    = 10 * time.Minute
	maxRunTime = 4 * time.Hour
)

// open is a database with delayed_job's table. Its columns have no time zone, so the
// sessions have one that is far from UTC: a comparison in the session's zone would show.
func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Empty(t)
	library.Exec(t, pool, schema)
	return pgtest.Connect(t, pool, func(config *pgxpool.Config) {
		config.ConnConfig.RuntimeParams["timezone"] = "Pacific/Auckland"
	})
}

// add adds a job that has had so many attempts, and returns its id.
func add(t *testing.T, pool *pgxpool.Pool, attempts int) int64 {
	t.Helper()
	return library.One[int64](t, pool, `insert into delayed_jobs (handler, attempts, run_at)
		values ('--- !ruby/struct:Order', $1, timezone('UTC', now())) returning id`, attempts)
}

// claim claims the next job as a worker does.
func claim(t *testing.T, pool *pgxpool.Pool, worker string) int64 {
	t.Helper()
	return library.One[int64](t, pool, sqlClaim, worker, maxRunTime)
}

// loseAJob adds a job that has had so many attempts, claims it, and dates the claim back,
// so that the lease has expired.
func loseAJob(t *testing.T, pool *pgxpool.Pool, attempts int) int64 {
	t.Helper()
	id := add(t, pool, attempts)
	require.Equal(t, id, claim(t, pool, "host:a pid:1"))
	age(t, pool, id, "11 minutes")
	return id
}

// age dates the start of a job back by an interval.
func age(t *testing.T, pool *pgxpool.Pool, id int64, interval string) {
	t.Helper()
	library.Exec(t, pool, `update delayed_jobs set locked_at = timezone('UTC', now()) - $2::interval where id = $1`,
		id, interval)
}

// A worker dies. Without the reaper, its job waits for four hours.
func TestAnotherWorkerFinishesALostJob(t *testing.T) {
	t.Parallel()
	pool := open(t)
	id := loseAJob(t, pool, 0)

	require.Equal(t, 1, library.Reap(t, pool, delayedjob.Config(longest)).ResetCount)
	require.Equal(t, 1, library.One[int](t, pool, `select attempts from delayed_jobs`), "delayed_job does not count it")
	require.Equal(t, id, claim(t, pool, "host:b pid:1"))
	library.Exec(t, pool, sqlDestroy, id)
}

// delayed_job counts no attempt when a worker is lost. Without the reaper, a job that
// kills its worker is given to one worker after the other, for ever.
func TestALostJobWithoutAttemptsFails(t *testing.T) {
	t.Parallel()
	pool := open(t)
	failed := add(t, pool, 24)
	require.Equal(t, failed, claim(t, pool, "host:a pid:1"))
	library.Exec(t, pool, sqlFail, failed)
	id := loseAJob(t, pool, 24)

	require.Equal(t, 1, library.Reap(t, pool, delayedjob.Config(longest)).DeadLetterCount)
	require.True(t, library.One[bool](t, pool, `select attempts = 25 and failed_at between
		timezone('UTC', now()) - interval '1 minute' and timezone('UTC', now()) from delayed_jobs where id = $1`, id),
		"failed_at is in UTC")
	want := library.Shape(t, pool, "delayed_jobs", strconv.FormatInt(failed, 10))
	want["locked_at"], want["locked_by"] = true, true // the reaper unlocks
	require.Equal(t, want, library.Shape(t, pool, "delayed_jobs", strconv.FormatInt(id, 10)))
}

// delayed_job leaves failed jobs locked. A reaper that took them for lost ones would run
// them again, years later.
func TestAFailedJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool := open(t)
	id := add(t, pool, 0)
	require.Equal(t, id, claim(t, pool, "host:a pid:1"))
	library.Exec(t, pool, sqlFail, id)
	age(t, pool, id, "1 year")

	require.Empty(t, library.Reap(t, pool, delayedjob.Config(longest)).Actions)
}

// If a redrive left failed_at set, no worker would claim the job.
func TestAFailedJobIsRedriven(t *testing.T) {
	t.Parallel()
	pool := open(t)
	id := loseAJob(t, pool, 24)
	require.Equal(t, 1, library.Reap(t, pool, delayedjob.Config(longest)).DeadLetterCount)

	result, err := deadletter.Redrive(t.Context(), pool, delayedjob.Letters(), "operator", deadletter.Filter{}, 10)
	require.NoError(t, err)
	require.Equal(t, 1, result.RedrivenCount)
	require.Equal(t, id, claim(t, pool, "host:b pid:1"))
}

// A job that has not run for as long as it may is given to a second worker, and runs
// twice at once. In the session's zone every job would, as soon as it runs.
func TestARunningJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool := open(t)
	id := loseAJob(t, pool, 0)
	age(t, pool, id, "9 minutes")

	require.Empty(t, library.Reap(t, pool, delayedjob.Config(longest)).Actions)
}

// The mapping must name what delayed_job's table has.
func TestTheMappingFits(t *testing.T) {
	t.Parallel()
	pool := open(t)
	loseAJob(t, pool, 0)

	library.RequireFit(t, pool, delayedjob.Config(longest))
}
