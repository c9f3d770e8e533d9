package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/reaper"
)

// A function of the service's that panics must not end the answer without a word, nor show
// what it was given.
func TestAPanicIsAnAnswer(t *testing.T) {
	t.Parallel()
	base := shop(filled(t))
	letter := "/shop/letter?id=" + aLetter(t, base)
	secret := func() { panic("4711-secret") }
	tests := map[string]struct {
		change func(*console.Config)
		page   string
	}{
		"of Access": {func(cfg *console.Config) {
			cfg.Access = func(*http.Request) (string, console.Level, error) { secret(); return "", 0, nil }
		}, "/shop/overview"},
		"of Redact": {func(cfg *console.Config) {
			cfg.ShowPayloads = true
			cfg.Redact = func(string, json.RawMessage) json.RawMessage { secret(); return nil }
		}, letter},
		"of History": {func(cfg *console.Config) {
			cfg.Databases[0].History = console.HistoryFunc(
				func(context.Context, pgx.Tx, int) ([]console.Entry, error) { secret(); return nil, nil })
		}, "/shop/history"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := base
			cfg.Databases = []console.Database{base.Databases[0]}
			test.change(&cfg)
			var text *bytes.Buffer
			cfg.Logger, text = logged()
			h := handler(t, cfg)
			for range 2 { // the second time the first one's read is known
				for _, accept := range []string{"text/html", asJSON} {
					got := get(t, h, test.page, "Accept", accept)
					require.Equal(t, http.StatusInternalServerError, got.StatusCode, got.body)
					require.NotContains(t, got.body, "4711")
					require.False(t, containsCard(got.body))
					require.Equal(t, "no-store", got.Header.Get("Cache-Control"))
				}
			}
			require.Contains(t, text.String(), "guard_test.go", "the log has the stack")
		})
	}
}

// A form that is sent to the wrong address, or with the wrong method, changes nothing and
// says which one would do.
func TestOtherMethodsAreNotAllowed(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(filled(t)))
	tests := map[string]struct{ method, path, allow string }{
		"a page":               {"POST", "/shop/overview", "GET"},
		"a page that acts too": {"DELETE", "/shop/plan", "GET, POST"},
		"a change":             {"GET", "/shop/window/close", "POST"},
		"a change as JSON":     {"PUT", "/shop/gates/open.json", "POST"},
		"a file":               {"POST", "/static/style.css", "GET"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := send(t, h, test.method, test.path, "")
			require.Equal(t, http.StatusMethodNotAllowed, got.StatusCode)
			require.Equal(t, test.allow, got.Header.Get("Allow"))
			requireGuarded(t, got)
		})
	}
	require.Equal(t, http.StatusOK, send(t, h, http.MethodHead, "/shop/overview", "").StatusCode)
}

// requireGuarded checks the headers that every answer has.
func requireGuarded(t *testing.T, got reply) {
	t.Helper()
	require.True(t, strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "default-src 'none'; "))
	require.NotContains(t, got.Header.Get("Content-Security-Policy"), "unsafe")
	require.Equal(t, "nosniff", got.Header.Get("X-Content-Type-Options"))
	require.Equal(t, "no-referrer", got.Header.Get("Referrer-Policy"))
	require.Equal(t, "no-store", got.Header.Get("Cache-Control"))
	require.Empty(t, got.Header.Get("Set-Cookie"))
}

// A path that a ServeMux would clean up by a redirect to the host's root leaves the prefix.
func TestAnUntidyPathIsNotRedirected(t *testing.T) {
	t.Parallel()
	h := http.StripPrefix("/ops", handler(t, shop(filled(t))))
	for _, page := range []string{"/ops//shop/overview", "/ops/shop//overview", "/ops/shop/../shop/overview", "/ops/shop/./x"} {
		got := get(t, h, page)
		require.Equal(t, http.StatusNotFound, got.StatusCode, page)
		requireGuarded(t, got)
	}
	require.Equal(t, "./", get(t, http.StripPrefix("/", handler(t, shop(filled(t)))), "/").Header.Get("Location"))
}

// A form may be as large as its sender likes. It is not read to its end.
func TestALargeFormIsRefused(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(filled(t)))
	got := post(t, h, "/shop/plan", url.Values{"plan": {strings.Repeat("x", 5<<20)}})
	require.Equal(t, http.StatusRequestEntityTooLarge, got.StatusCode)
	requireGuarded(t, got)

	none := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/shop/plan", http.NoBody)
	none.Body = nil
	w := httptest.NewRecorder()
	h.ServeHTTP(w, none)
	require.Equal(t, http.StatusBadRequest, w.Code)
}

// Whoever may act can send any plan. It reaps what an apply would reap, and nothing else.
func TestAForgedPlanReapsNoLiveLease(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	h := handler(t, shop(pool))
	var live reaper.Job
	live.WouldAction = reaper.WouldReset
	require.NoError(t, pool.QueryRow(t.Context(), `select job_id::text, lease_owner, lease_until, attempts, max_attempts from job_queue
		where lease_until > now() limit 1`).Scan(&live.JobID, &live.LeaseOwner, &live.LeaseUntil, &live.Attempts, &live.MaxAttempts))
	stale, _ := planned(t, h)
	moved := stale.Jobs[0]
	moved.WouldAction = reaper.WouldMove
	if stale.Jobs[0].WouldAction == reaper.WouldMove {
		moved.WouldAction = reaper.WouldReset
	}
	text, err := json.Marshal(reaper.DryRunResult{Jobs: []reaper.Job{live, moved}})
	require.NoError(t, err)

	var result reaper.ApplyResult
	require.NoError(t, json.Unmarshal([]byte(post(t, h, "/shop/plan", url.Values{"plan": {string(text)}}, "Accept", asJSON).body), &result))
	require.Equal(t, []reaper.Skip{
		{JobID: live.JobID, Reason: reaper.SkipNotStale}, {JobID: moved.JobID, Reason: reaper.SkipChanged},
	}, result.Skipped)
	require.Empty(t, result.Actions)

	many := make([]reaper.Job, 1001)
	text, err = json.Marshal(reaper.DryRunResult{Jobs: many})
	require.NoError(t, err)
	require.Contains(t, post(t, h, "/shop/plan", url.Values{"plan": {string(text)}}).body, "too many jobs")
}

// Ids, kinds and errors may be anything that a text can be.
func TestOddTextsAreShownAndFound(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	long := strings.Repeat("backtrace <b>\n", 20_000)
	_, err := pool.Exec(t.Context(), `alter table job_dead_letter alter dead_letter_id drop default, alter dead_letter_id type text;
		truncate job_dead_letter`)
	require.NoError(t, err)
	ids := []string{"a/b?c&d=e#f", "ünïcødé ☃ 'quoted\"", strings.Repeat("long", 300), "x.json", "<i>"}
	for _, id := range ids {
		_, err = pool.Exec(t.Context(), `insert into job_dead_letter (dead_letter_id, job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
			select $1, job_id, '<script>', 5, 5, $2, '<img>', '{}' from job_queue limit 1`, id, long)
		require.NoError(t, err)
	}
	h := handler(t, shop(pool))
	page := get(t, h, "/shop/letters").body
	require.Less(t, len(page), 50_000, "a long error is cut in the table")
	require.NotContains(t, page, "<script>,")
	require.NotContains(t, page, "<img>")
	for _, id := range ids {
		got := get(t, h, "/shop/letter.json?"+url.Values{"id": {id}}.Encode())
		require.Equal(t, http.StatusOK, got.StatusCode, got.body)
		var found struct {
			Letter struct {
				FinalError string `json:"final_error"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(got.body), &found))
		require.Equal(t, long, found.Letter.FinalError, "the letter's own page has all of it")
	}
}
