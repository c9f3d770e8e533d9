package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// fill puts stale leases, live ones and dead letters into the reference tables.
const fill = `
insert into job_queue (job_kind, state, attempts, lease_owner, lease_until)
select (array['send_invoice', 'charge_card', 'resize_image', 'sync_stock'])[1 + n % 4], 'leased', n % 5, 'worker-' || n % 7,
  now() - make_interval(secs => 60 * n + 5)
from generate_series(1, 60) n;
insert into job_queue (job_kind, state, lease_owner, lease_until)
select 'send_invoice', 'leased', 'worker-live-' || n % 3, now() + make_interval(secs => 25 * n)
from generate_series(1, 40) n;
with dead as (
  insert into job_queue (job_kind, state, attempts, payload, last_error)
  select (array['send_invoice', 'charge_card'])[1 + n % 2], 'dead_letter', 5,
    jsonb_build_object('card', '4111-' || n), 'lease_expired_reaped_at_max_attempts'
  from generate_series(1, 30) n
  returning *
)
insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, moved_at, job)
select job_id, job_kind, 5, 5, last_error, 'reaper', now() - interval '3 days', to_jsonb(dead) from dead;
insert into queue_config (key, value, updated_by) values
  ('queue.job_substrate.enabled', 'true', 'ops@example.com'), ('queue.lease.reaper_enabled', 'true', 'ops@example.com'),
  ('queue.lease.reaper_dry_run_only', 'false', 'ops@example.com')`

// filled is a pool on a database with jobs in it.
func filled(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.New(t)
	_, err := pool.Exec(t.Context(), fill)
	require.NoError(t, err)
	return pool
}

// as is an Access that knows one person.
func as(actor string, level console.Level) func(*http.Request) (string, console.Level, error) {
	return func(*http.Request) (string, console.Level, error) { return actor, level, nil }
}

// shop is a Config of one database that somebody may do all with.
func shop(pool *pgxpool.Pool) console.Config {
	return console.Config{
		Databases: []console.Database{{Name: "shop", Colour: "teal", Look: pool, Act: pool}},
		Access:    as("alice", console.LevelGates),
	}
}

// crowded is a console with all that it can show: two databases, an audit table, passes.
func crowded(t testing.TB) console.Config {
	t.Helper()
	pool := filled(t)
	_, err := pool.Exec(t.Context(), `create table reaper_audit (applied_at timestamptz not null default now(),
		actor text not null, reset_count integer not null, dead_letter_count integer not null,
		failed_count integer not null, result jsonb not null)`)
	require.NoError(t, err)
	audit := console.Audit{}
	r, err := reaper.New(pool, reaper.Config{OnApply: audit.Write})
	require.NoError(t, err)
	passes := &console.Passes{}
	for limit := range 4 {
		result, err := r.Apply(t.Context(), "shop-reaper", limit+1)
		require.NoError(t, err)
		passes.Add(t.Context(), reaper.Pass{Result: result, Took: 12 * time.Millisecond})
	}
	passes.Add(t.Context(), reaper.Pass{Err: reaper.ErrReadOnly, Took: time.Millisecond})
	cfg := shop(pool)
	cfg.ShowPayloads = true
	cfg.Databases[0].History, cfg.Databases[0].Passes = audit, passes
	cfg.Databases = append(cfg.Databases, console.Database{Name: "billing", Colour: "red", Look: pool})
	return cfg
}

// handler makes a console.
func handler(t testing.TB, cfg console.Config) http.Handler {
	t.Helper()
	h, err := console.New(cfg)
	require.NoError(t, err)
	return h
}

// reply is an answer with its body.
type reply struct {
	*http.Response

	body string
}

// send sends a request, with headers as name and value in turn.
func send(t testing.TB, h http.Handler, method, target, body string, headers ...string) reply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer := w.Result()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return reply{answer, string(text)}
}

func get(t testing.TB, h http.Handler, target string, headers ...string) reply {
	t.Helper()
	return send(t, h, http.MethodGet, target, "", headers...)
}

func post(t testing.TB, h http.Handler, target string, form url.Values, headers ...string) reply {
	t.Helper()
	return send(t, h, http.MethodPost, target, form.Encode(), headers...)
}

// aLetter is the id of a dead letter.
func aLetter(t testing.TB, cfg console.Config) string {
	t.Helper()
	var id string
	const sql = "select dead_letter_id::text from job_dead_letter order by moved_at, dead_letter_id limit 1"
	require.NoError(t, cfg.Databases[0].Look.QueryRow(t.Context(), sql).Scan(&id))
	return id
}

// setting is the value of a setting.
func setting(t testing.TB, pool *pgxpool.Pool, key string) string {
	t.Helper()
	return one[string](t, pool, "select coalesce((select value from queue_config where key = '"+key+"'), '')")
}

// one reads one value.
func one[T any](t testing.TB, pool *pgxpool.Pool, sql string) T {
	t.Helper()
	var value T
	require.NoError(t, pool.QueryRow(t.Context(), sql).Scan(&value))
	return value
}

func containsCard(text string) bool { return strings.Contains(text, "4111-") }
