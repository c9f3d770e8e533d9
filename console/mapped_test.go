package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// sqlMapped is a queue with other names, a key of another type, and no kinds.
const sqlMapped = `
create schema ops;
create table ops."the jobs" (id bigint primary key generated always as identity, status text not null, tries int not null default 0,
  tries_max int not null default 3, run_at timestamptz not null default now(), worker text, locked_until timestamptz);
create index on ops."the jobs" (locked_until) where status = 'running';
create table ops.dead (dead_letter_id bigint primary key generated always as identity, job_id bigint not null, job_kind text not null,
  attempts int not null, max_attempts int not null, final_error text not null, moved_by text not null,
  moved_at timestamptz not null default now(), job jsonb not null, redriven_at timestamptz, redriven_by text);
create index on ops.dead (job_id);
create table ops.settings (key text primary key, value text not null, updated_at timestamptz not null default now(), updated_by text);
insert into ops."the jobs" (status, tries, worker, locked_until)
select 'running', n, 'w', now() + make_interval(mins => 2 - n) from generate_series(0, 4) n;
insert into ops."the jobs" (status, tries) values ('dead', 3);
insert into ops.dead (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
select id, '', 3, 3, 'x', 'r', to_jsonb(j) from ops."the jobs" j where status = 'dead';
insert into ops.settings (key, value) values
  ('queue.job_substrate.enabled', 'true'), ('queue.lease.reaper_enabled', 'true'), ('queue.lease.reaper_dry_run_only', 'false')`

// Few queues have the reference schema's names; the console's own SQL must not either.
func TestAMappedQueue(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	_, err := pool.Exec(t.Context(), sqlMapped)
	require.NoError(t, err)
	h := handler(t, console.Config{Access: as("alice", console.LevelGates), Databases: []console.Database{{
		Name: "shop", Look: pool, Act: pool, Reaper: reaper.Config{
			Queue: reaper.Table{
				Name: pgx.Identifier{"ops", "the jobs"},
				Columns: reaper.Columns{
					JobID: "id", JobKind: reaper.None, State: "status", Attempts: "tries", MaxAttempts: "tries_max",
					ScheduledAt: "run_at", LeaseOwner: "worker", LeaseUntil: "locked_until", LastError: reaper.None,
				},
				States: reaper.States{Leased: "running", RetryWaiting: "waiting", DeadLetter: "dead"},
			},
			Gates: gates.Table{Name: pgx.Identifier{"ops", "settings"}}, DeadLetter: deadletter.Table{Name: pgx.Identifier{"ops", "dead"}},
		},
	}}})
	for _, page := range append([]string{"/shop/letter?id=1"}, lookPages...) {
		got := get(t, h, page)
		require.Equal(t, http.StatusOK, got.StatusCode, "%s: %s", page, got.body)
	}
	var result deadletter.RedriveResult
	got := post(t, h, "/shop/redrive", url.Values{"id": {"1"}}, "Accept", asJSON)
	require.NoError(t, json.Unmarshal([]byte(got.body), &result))
	require.Equal(t, 1, result.RedrivenCount)
	require.Equal(t, http.StatusSeeOther, post(t, h, "/shop/gates/close", url.Values{"key": {gates.ReaperEnabled}}).StatusCode)
	require.Equal(t, "false", one[string](t, pool, "select value from ops.settings where key = 'queue.lease.reaper_enabled'"))
}

// Gates that are not in a table can be looked at, not changed.
func TestGatesThatAreNoTableAreShown(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	cfg := shop(pool)
	cfg.Databases[0].Reaper.Gates = gates.Static{}
	h := handler(t, cfg)
	got := get(t, h, "/shop/gates")
	require.Contains(t, got.body, "cannot be changed here")
	require.NotContains(t, got.body, "<form")
	require.Equal(t, http.StatusBadRequest, post(t, h, "/shop/window/close", nil).StatusCode)
	require.Equal(t, http.StatusBadRequest, post(t, h, "/shop/gates/close", url.Values{"key": {gates.ReaperEnabled}}).StatusCode)
}
