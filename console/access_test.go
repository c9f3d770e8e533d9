package console_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
)

// A hidden button is no protection: whoever knows an address can send a form to it.
func TestTheServerEnforcesTheLevel(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	const forbidden = http.StatusForbidden
	tests := map[string]struct {
		method, path string
		form         url.Values
		none         int // what each level gets
		look         int
		act          int
		gates        int
	}{
		"look":         {"GET", "/shop/overview", nil, forbidden, 200, 200, 200},
		"look as JSON": {"GET", "/shop/jobs.json", nil, forbidden, 200, 200, 200},
		"apply":        {"POST", "/shop/plan", nil, forbidden, forbidden, 400, 400},
		"redrive":      {"POST", "/shop/redrive", nil, forbidden, forbidden, 400, 400},
		"purge":        {"POST", "/shop/purge", nil, forbidden, forbidden, 400, 400},
		"rehearse":     {"POST", "/shop/rehearse", nil, forbidden, forbidden, 200, 200},
		"close a gate": {"POST", "/shop/gates/close", url.Values{"key": {"x"}}, forbidden, forbidden, 400, 400},
		"open a gate":  {"POST", "/shop/gates/open", url.Values{"key": {"x"}}, forbidden, forbidden, forbidden, 400},
		"open a window": {"POST", "/shop/window/open", url.Values{"duration": {"1h"}},
			forbidden, forbidden, forbidden, 400},
		"close a window": {"POST", "/shop/window/close", nil, forbidden, forbidden, 303, 303},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for level, want := range []int{test.none, test.look, test.act, test.gates} {
				cfg := shop(pool)
				cfg.Access = as("alice", console.Level(level))
				got := send(t, handler(t, cfg), test.method, test.path, test.form.Encode())
				require.Equal(t, want, got.StatusCode, "%s: %s", console.Level(level), got.body)
			}
		})
	}
}

// Who forgets to configure Access must not have opened the queue to everybody.
func TestWithoutAccessEverybodyMayOnlyLook(t *testing.T) {
	t.Parallel()
	cfg := shop(filled(t))
	cfg.Access = nil
	h := handler(t, cfg)
	require.Equal(t, http.StatusOK, get(t, h, "/shop/plan").StatusCode)
	require.NotContains(t, get(t, h, "/shop/plan").body, "Apply this plan to")
	require.Equal(t, http.StatusForbidden, post(t, h, "/shop/window/close", nil).StatusCode)
}

// A change that nobody has signed cannot be asked about later.
func TestActingNeedsAnActor(t *testing.T) {
	t.Parallel()
	cfg := shop(filled(t))
	cfg.Access = as(" \t", console.LevelGates)
	require.Equal(t, http.StatusForbidden, post(t, handler(t, cfg), "/shop/window/close", nil).StatusCode)
}

// What Access says of a caller may name accounts; the page must not show it.
func TestAnUnknownCallerIsToldNothing(t *testing.T) {
	t.Parallel()
	cfg := shop(filled(t))
	cfg.Access = func(*http.Request) (string, console.Level, error) {
		return "alice", console.LevelGates, errors.New("session 4711 of alice has ended")
	}
	h := handler(t, cfg)
	for _, got := range []reply{get(t, h, "/shop/overview"), post(t, h, "/shop/window/close", nil), get(t, h, "/shop/jobs.json")} {
		require.Equal(t, http.StatusUnauthorized, got.StatusCode)
		require.NotContains(t, got.body, "4711")
	}
}

// A database that is configured for looking must stay unchanged, whoever asks.
func TestWithoutAnActPoolNothingCanBeChanged(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	cfg := shop(pool)
	cfg.Databases[0].Act = nil
	h := handler(t, cfg)
	require.Equal(t, http.StatusForbidden, post(t, h, "/shop/window/close", nil).StatusCode)
	require.NotContains(t, get(t, h, "/shop/gates").body, "<form")
}

// A page of another site can have the operator's browser send a form here.
func TestAForgedPostChangesNothing(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	h := handler(t, shop(pool))
	form := url.Values{"key": {"queue.lease.reaper_enabled"}}
	for name, header := range map[string][2]string{
		"a browser's word":  {"Sec-Fetch-Site", "cross-site"},
		"another subdomain": {"Sec-Fetch-Site", "same-site"},
		"an older browser":  {"Origin", "https://evil.example"},
		"a sandboxed frame": {"Origin", "null"},
	} {
		got := post(t, h, "/shop/gates/close", form, header[0], header[1])
		require.Equal(t, http.StatusForbidden, got.StatusCode, name)
	}
	require.Equal(t, "true", setting(t, pool, "queue.lease.reaper_enabled"))
	require.Equal(t, http.StatusSeeOther, post(t, h, "/shop/gates/close", form, "Sec-Fetch-Site", "same-origin").StatusCode)
	require.Equal(t, "false", setting(t, pool, "queue.lease.reaper_enabled"))
}

// A link, a prefetch or a crawler sends GET.
func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	h := handler(t, shop(pool))
	for _, page := range []string{"/shop/gates/close?key=queue.lease.reaper_enabled", "/shop/window/close", "/shop/rehearse"} {
		require.Equal(t, http.StatusMethodNotAllowed, get(t, h, page).StatusCode, page)
	}
	require.Equal(t, "true", setting(t, pool, "queue.lease.reaper_enabled"))
}
