//go:build unix

package main

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Whoever drains a large backlog would sit before a terminal that says nothing.
func TestDrainShowsItsProgressInOneLine(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	release := slowQueue(t, pool)
	x := start(t, address(t, pool), "drain", "--batch", "10")
	x.shows("... and 15 more", "Reap all stale leases", "[y/N]")
	x.types("y\r")
	x.shows("10 reaped, ", "about 20 left")
	release()
	require.NotContains(t, x.shows("Reset 30, moved 0 to the dead letters, in 3 batches"), " reaped, ")
	x.ends()
}

// Ctrl-C in a drain would throw the batch under way away, or leave the operator without
// an account of what was done.
func TestAnInterruptedDrainEndsAfterItsBatch(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	release := slowQueue(t, pool)
	x := start(t, address(t, pool), "drain", "--batch", "10", "--yes")
	x.shows("10 reaped, ")
	waits(t, pool)
	x.types("\x03")
	x.shows("ending after the batch under way")
	release()
	x.shows("Reset 20, moved 0 to the dead letters, in 2 batches", "leasereaper: interrupted")
	require.Len(t, leased(t, pool), 10)
}

// A drain whose batch hangs could not be ended.
func TestASecondCtrlCEndsADrainAtOnce(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	release := slowQueue(t, pool)
	x := start(t, address(t, pool), "drain", "--batch", "10", "--yes")
	x.shows("10 reaped, ")
	waits(t, pool)
	x.types("\x03")
	x.shows("ending after the batch under way")
	x.types("\x03")
	require.Error(t, <-x.ended)
	release()
	require.Len(t, leased(t, pool), 20)
}

// waits returns when a batch waits for its release.
func waits(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	require.Eventually(t, func() bool {
		found, err := collect[bool](t.Context(), pool, `select exists (
			select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`)
		return err == nil && found[0]
	}, 10*time.Second, time.Millisecond)
}

// leased are the jobs that were not reaped.
func leased(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	ids, err := collect[string](t.Context(), pool, "select job_id::text from job_queue where state = 'leased'")
	require.NoError(t, err)
	return ids
}

// slowQueue makes thirty stale leases, of which ten can be reaped before the
// returned function is called.
func slowQueue(t *testing.T, pool *pgxpool.Pool) (release func()) {
	t.Helper()
	openGates(t, pool)
	execute(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		select 'job', 'leased', 'w', now() - make_interval(secs => 100 - n) from generate_series(1, 30) n`)
	execute(t, pool, `create function wait() returns trigger language plpgsql as $$ begin
		if (select count(*) from job_queue where state = 'retry_waiting') >= 10 then
			while not pg_try_advisory_xact_lock(1) loop -- unlike a wait for the lock it has no timeout
				perform pg_sleep(0.01);
			end loop;
		end if;
		return new; end $$`)
	execute(t, pool, `create trigger wait before update on job_queue for each row execute function wait()`)
	held, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = held.Exec(t.Context(), `select pg_advisory_xact_lock(1)`)
	require.NoError(t, err)
	release = func() { _ = held.Rollback(t.Context()) }
	t.Cleanup(func() { _ = held.Rollback(context.WithoutCancel(t.Context())) })
	return release
}
