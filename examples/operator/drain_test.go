//go:build unix

package main

import (
	"context"
	"strings"
	"testing"

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

// Ctrl-C in a drain would leave the operator without an account of what was
// done.
func TestAnInterruptedDrainSaysWhatWasDone(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	slowQueue(t, pool)
	x := start(t, address(t, pool), "drain", "--batch", "10", "--yes")
	x.shows("10 reaped, ")
	x.types("\x03")
	x.becomes(func(screen string) bool { // what the batch under way came to may be unknown, and is said then
		return strings.Contains(screen, "Reset 10, moved 0 to the dead letters, in 1 batch") &&
			(strings.Contains(screen, "operator: interrupted") || strings.Contains(screen, "outcome unknown"))
	}, "an account")
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
			perform pg_advisory_xact_lock(1);
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
