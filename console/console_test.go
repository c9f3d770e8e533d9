package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// lookPages are pages that anybody who may look can open.
var lookPages = []string{
	"/shop/overview", "/shop/jobs", "/shop/plan", "/shop/gates", "/shop/letters", "/shop/redrive", "/shop/purge?older=1d",
	"/shop/verify",
}

// A page that fails to render, or that names an address from the host's root, does not
// work when it is needed, or not behind every proxy.
func TestEachPageAnswersWithRelativeAddresses(t *testing.T) {
	t.Parallel()
	cfg := crowded(t)
	h := handler(t, cfg)
	addresses := regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	for _, page := range append([]string{"/shop/history", "/shop/letter?id=" + aLetter(t, cfg), "/nowhere/x/y"}, lookPages...) {
		got := get(t, h, page)
		require.Contains(t, got.body, "</html>", page)
		require.NotContains(t, got.body, "no value", page)
		for _, found := range addresses.FindAllStringSubmatch(got.body, -1) {
			require.NotRegexp(t, `^(/|[a-z]+:)`, found[1], page)
		}
		if page != "/nowhere/x/y" {
			require.Equal(t, http.StatusOK, got.StatusCode, "%s: %s", page, got.body)
		}
	}
}

// What the console's pages could leak or load must not depend on which answer it is.
func TestEachAnswerHasTheHeaders(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(filled(t)))
	for _, page := range []string{
		"/", "/shop/overview", "/shop/jobs.json", "/static/style.css", "/static/script.js", "/static/none", "/nowhere", "/shop/letter?id=none", "/shop/purge?older=x",
	} {
		requireGuarded(t, get(t, h, page))
		requireGuarded(t, get(t, h, page, "Range", "bytes=999999-"))
	}
}

// A reverse proxy mounts the console wherever it likes; a redirect to the host's root
// would leave it.
func TestRedirectsAreRelative(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(filled(t)))
	mux := http.NewServeMux()
	mux.Handle("/ops/", http.StripPrefix("/ops", h))
	mux.Handle("/ops", http.StripPrefix("/ops", h))

	tests := map[string]struct{ path, location string }{
		"the prefix alone":         {"/ops", "./ops/"},
		"the console's root":       {"/ops/", "shop/overview"},
		"a database":               {"/ops/shop", "shop/overview"},
		"a database with a slash":  {"/ops/shop/", "overview"},
		"the prefix with a query":  {"/ops?x=/y", "./ops/"},
		"the root, asked for JSON": {"/ops/.json", "shop/overview"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := get(t, mux, test.path)
			require.Equal(t, http.StatusSeeOther, got.StatusCode)
			require.Equal(t, test.location, got.Header.Get("Location"))
		})
	}
}

// Other tools read what the console shows. Without an Accept header it is HTML, as a
// person with curl may want either.
func TestPagesAreJSONOnRequest(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(filled(t)))
	require.Contains(t, get(t, h, "/shop/jobs").Header.Get("Content-Type"), "text/html")
	require.Contains(t, get(t, h, "/shop/jobs", "Accept", "text/html,application/json;q=0.5").Header.Get("Content-Type"), "text/html")

	plan, letters := &reaper.DryRunResult{}, &deadletter.Page{}
	shapes := map[string]any{
		"/shop/overview": &map[string]any{}, "/shop/jobs": &reaper.DryRunResult{}, "/shop/plan?limit=3": plan,
		"/shop/gates": &map[string]any{}, "/shop/letters": letters, "/shop/verify": &reaper.Report{},
		"/shop/redrive": &map[string]any{}, "/shop/purge?older=1d": &map[string]any{},
	}
	for page, shape := range shapes {
		path, query, _ := strings.Cut(page, "?")
		dotted := get(t, h, path+".json?"+query)
		require.Equal(t, http.StatusOK, dotted.StatusCode, page)
		require.Contains(t, dotted.Header.Get("Content-Type"), "application/json", page)
		require.NoError(t, json.Unmarshal([]byte(dotted.body), shape), page)
		require.True(t, json.Valid([]byte(get(t, h, page, "Accept", "application/json").body)), page)
	}
	require.Len(t, plan.Jobs, 3)
	require.NotEmpty(t, letters.Letters)

	missing := get(t, h, "/nowhere/jobs.json")
	require.Equal(t, http.StatusNotFound, missing.StatusCode)
	require.Contains(t, missing.body, `"error"`)
}

// A kind is text from somewhere; as HTML it would run in the operator's browser.
func TestTextFromTheQueueIsEscaped(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	_, err := pool.Exec(t.Context(), `insert into job_queue (job_kind, state, lease_owner, lease_until)
		values ('<script>alert(1)</script>', 'leased', '"><img src=x>', now() - interval '1 minute')`)
	require.NoError(t, err)
	h := handler(t, shop(pool))
	for _, page := range []string{"/shop/overview", "/shop/jobs", "/shop/plan"} {
		got := get(t, h, page).body
		require.NotContains(t, got, "<script>alert", page)
		require.NotContains(t, got, "<img", page)
		require.Contains(t, got, "&lt;script&gt;", page)
	}
}

// A console that starts with half a configuration shows the wrong thing at night.
func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/none")
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	tests := map[string]struct {
		cfg  console.Config
		want []error
	}{
		"no database":          {console.Config{}, []error{console.ErrNoDatabase}},
		"a negative freshness": {console.Config{Fresh: -1}, []error{console.ErrNegative, console.ErrNoDatabase}},
		"a name with a slash":  {of(console.Database{Name: "a/b", Look: pool}), []error{console.ErrDatabase}},
		"a reserved name":      {of(console.Database{Name: "static", Look: pool}), []error{console.ErrDatabase}},
		"no pool":              {of(console.Database{Name: "a"}), []error{console.ErrDatabase}},
		"an unknown colour":    {of(console.Database{Name: "a", Look: pool, Colour: "#fff"}), []error{console.ErrDatabase}},
		"a wrong mapping": {
			of(console.Database{Name: "a", Look: pool, Reaper: reaper.Config{Grace: -1}}), []error{console.ErrDatabase, reaper.ErrNegative},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := console.New(test.cfg)
			for _, want := range test.want {
				require.ErrorIs(t, err, want)
			}
		})
	}
	_, err = console.New(of(console.Database{Name: "a", Look: pool, Act: pool}))
	require.NoError(t, err, "New asks no database")
}

func of(d console.Database) console.Config { return console.Config{Databases: []console.Database{d}} }

// A filter that means nothing must not show all letters.
func TestFiltersAreChecked(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(filled(t)))
	for query, status := range map[string]int{
		"kind=charge_card": http.StatusOK, "older=2d": http.StatusOK, "older=-1h": http.StatusBadRequest,
		"younger=soon": http.StatusBadRequest, "status=lost": http.StatusBadRequest, "job=none": http.StatusBadRequest,
		"after=x": http.StatusBadRequest,
	} {
		require.Equal(t, status, get(t, h, "/shop/letters?"+query).StatusCode, query)
	}
	var page deadletter.Page
	query := url.Values{"kind": {"charge_card"}}.Encode()
	require.NoError(t, json.Unmarshal([]byte(get(t, h, "/shop/letters.json?"+query).body), &page))
	require.Len(t, page.Letters, 15)
}
