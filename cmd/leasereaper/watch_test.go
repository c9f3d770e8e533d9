//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// The screen of somebody who watches a reaper at work would not show what it
// does, not fit a small terminal, or leave that broken.
func TestWatchShowsAReaperAtWork(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	fill(t, pool)
	x := start(t, address(t, pool), "watch", "--every", "100ms")
	screen := x.shows("closed  queue.job_substrate.enabled", "send_invoice", "none in the last hour",
		"An apply would not go ahead: queue.job_substrate.enabled=false")
	require.Regexp(t, `send_invoice +3 +0 +0  1m`, screen)
	require.Regexp(t, `charge_card +2 +1 +1  5m`, screen)
	x.requireFits(screen, 80, 24)
	require.True(t, x.hasAlternate())

	openGates(t, pool)
	x.shows("An apply may go ahead.")
	r, err := reaper.New(pool, reaper.Config{})
	require.NoError(t, err)
	_, err = r.Apply(t.Context(), "night-shift", 100)
	require.NoError(t, err)
	screen = x.shows("by night-shift", "1 not redriven, 1 in the last hour", "at most 5")
	require.Regexp(t, `move   charge_card +[0-9a-f-]+…  5 of 5 failed, by night-shift`, screen)
	require.Regexp(t, `reset  send_invoice +[0-9a-f-]+…  1 of 5 failed`, screen)
	require.Regexp(t, `(?m)·+█·*\s*$`, screen)
	x.requireFits(screen, 80, 24)

	x.types("q")
	x.ends()
}

// A job that was reset and then done would vanish from the figures, as it does
// from the tables.
func TestWatchKeepsWhatTheTablesForget(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	fill(t, pool)
	openGates(t, pool)
	x := start(t, address(t, pool), "watch", "--every", "100ms")
	x.shows("send_invoice")
	r, err := reaper.New(pool, reaper.Config{})
	require.NoError(t, err)
	_, err = r.Apply(t.Context(), "night-shift", 100)
	require.NoError(t, err)
	x.shows("at most 5")
	execute(t, pool, `delete from job_queue`)
	execute(t, pool, `insert into job_queue (job_kind, state, lease_until) values ('seen_later', 'leased', now())`)
	x.shows("seen_later", "at most 5")
	x.types("q")
	x.ends()
}

// However it is ended, the terminal would stay without a cursor or an echo.
func TestWatchLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		keys   string
		signal syscall.Signal
	}{
		"by q":             {keys: "q"},
		"by Ctrl-C":        {keys: "\x03"},
		"by Escape":        {keys: "\x1b"},
		"by SIGTERM":       {signal: syscall.SIGTERM},
		"by another's INT": {signal: syscall.SIGINT},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := start(t, address(t, pgtest.New(t)), "watch")
			x.shows("BACKLOG BY KIND")
			require.True(t, x.hasAlternate())
			if test.keys != "" {
				x.types(test.keys)
			} else {
				require.NoError(t, x.command.Process.Signal(test.signal))
			}
			x.ends()
		})
	}
}

// A terminal that is made smaller would show a torn screen, and one that is
// made larger would waste its room.
func TestWatchFollowsTheTerminalsSize(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	execute(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		select 'kind_' || n, 'leased', 'w', now() - interval '1 minute' from generate_series(10, 29) n`)
	x := start(t, address(t, pool), "watch")
	x.shows("kind_10", "kinds not shown")
	sizes := map[string]struct{ columns, lines uint16 }{
		"narrow": {40, 24}, "low": {80, 10}, "tiny": {20, 3}, "as it was": {80, 24},
	}
	for name, size := range sizes {
		x.resize(size.columns, size.lines)
		screen := x.becomes(func(screen string) bool {
			return lastLineFits(screen, int(size.columns), int(size.lines))
		}, name)
		x.requireFits(screen, int(size.columns), int(size.lines))
	}
	x.resize(100, 50)
	require.NotContains(t, x.shows("kind_29", "q quits"), "not shown")
	x.types("q")
	x.ends()
}

// A database that restarts would end the watch, or leave old figures that look
// like new ones.
func TestWatchOutlivesTheDatabase(t *testing.T) {
	t.Parallel()

	server, err := pgtest.Start(t.Context(), pgtest.ServerConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	connect(t, server, `insert into job_queue (job_kind, state, lease_until) values ('early', 'leased', now())`)
	x := start(t, server.ConnString("postgres"), "watch", "--every", "100ms")
	x.shows("early")

	require.NoError(t, server.Kill())
	screen := x.shows("the database has not answered for", "early", "old")
	x.requireFits(screen, 80, 24)

	require.NoError(t, server.Restart(t.Context()))
	connect(t, server, `insert into job_queue (job_kind, state, lease_until) values ('later', 'leased', now())`)
	require.NotContains(t, x.shows("later"), "has not answered")
	x.types("q")
	x.ends()
}

// Somebody who starts the watch because the database is away would get an error
// and a prompt.
func TestWatchWaitsForADatabaseThatIsAway(t *testing.T) {
	t.Parallel()

	x := start(t, "postgres://me:sesame@localhost:1/app", "watch", "--every", "100ms")
	require.NotContains(t, x.shows("the database has not answered for"), "sesame")
	x.types("q")
	x.ends()
}

// A table that is gone would be taken for a server that is away.
func TestWatchTellsAFailedLookFromAServerThatIsAway(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	x := start(t, address(t, pool), "watch", "--every", "100ms")
	x.shows("BACKLOG BY KIND")
	execute(t, pool, `alter table queue_config rename to queue_config_away`)
	screen := x.shows("each look has failed for", "BACKLOG BY KIND")
	require.NotContains(t, screen, "not answered")
	execute(t, pool, `alter table queue_config_away rename to queue_config`)
	x.becomes(func(screen string) bool { return !strings.Contains(screen, "failed for") }, "no trouble")
	x.types("q")
	x.ends()
}

// Whoever may only read could not watch, or the watch would write.
func TestWatchNeedsTheRightToReadAlone(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	fill(t, pool)
	database := pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize() // a name of this test's own, also for a role
	execute(t, pool, `create role `+database)
	execute(t, pool, `grant select on job_queue, job_dead_letter, queue_config to `+database)
	execute(t, pool, `alter database `+database+` set role = `+database)
	x := start(t, address(t, pool), "watch")
	x.shows("send_invoice")
	x.types("q")
	x.ends()
	execute(t, pool, `reset role; drop owned by `+database+`; drop role `+database)
}

// fill makes six leased jobs: three resets, a reset and a move, and a live one.
func fill(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	execute(t, pool, `insert into job_queue (job_kind, state, attempts, lease_owner, lease_until) values
		('send_invoice', 'leased', 0, 'w', now() - interval '1 minute'),
		('send_invoice', 'leased', 0, 'w', now() - interval '1 minute'),
		('send_invoice', 'leased', 0, 'w', now() - interval '1 minute'),
		('charge_card', 'leased', 0, 'w', now() - interval '5 minutes'),
		('charge_card', 'leased', 4, 'w', now() - interval '5 minutes'),
		('charge_card', 'leased', 0, 'w', now() + interval '1 hour')`)
}

func openGates(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	execute(t, pool, `insert into queue_config (key, value) values
		('queue.job_substrate.enabled', 'true'),
		('queue.lease.reaper_enabled', 'true'),
		('queue.lease.reaper_dry_run_only', 'false')`)
}

func address(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	address, err := connString(pool)
	require.NoError(t, err)
	return address
}

// connect runs a statement on a server, which gets the reference schema.
func connect(t *testing.T, server *pgtest.Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.ConnString("postgres"))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), reaper.Schema)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}
