package console_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
)

// logged is a Logger, and what it has written.
func logged() (*slog.Logger, *bytes.Buffer) {
	var text bytes.Buffer
	return slog.New(slog.NewJSONHandler(&text, nil)), &text
}

// What somebody changed must be found under their name later, and a payload nowhere.
func TestTheLogSaysWhoDidWhat(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	cfg := shop(pool)
	var text *bytes.Buffer
	cfg.Logger, text = logged()
	h := handler(t, cfg)
	letter := aLetter(t, cfg)
	require.Equal(t, http.StatusSeeOther, post(t, h, "/shop/gates/close", url.Values{"key": {gates.ReaperEnabled}}).StatusCode)
	form := url.Values{"older": {"1d"}, "unredriven": {"yes"}, "word": {"purge"}, "id": {letter}}
	require.Equal(t, http.StatusOK, post(t, h, "/shop/purge", form).StatusCode)
	require.Contains(t, text.String(), `"actor":"alice","database":"shop","path":"/shop/gates/close","key":"queue.lease.reaper_enabled","value":"false"`)
	require.Contains(t, text.String(), `"path":"/shop/purge","redriven":0,"unredriven":1,"jobs":1`)

	_, err := pool.Exec(t.Context(), `alter table queue_config add constraint shut check (value <> 'true') not valid`)
	require.NoError(t, err)
	got := post(t, h, "/shop/gates/open", url.Values{"key": {gates.ReaperEnabled}, "word": {"open"}})
	require.Equal(t, http.StatusBadGateway, got.StatusCode, got.body)
	require.Contains(t, text.String(), `"msg":"console cannot answer","actor":"alice"`)
	require.NotContains(t, text.String(), "Failing row", "the detail of a PgError is what a row holds")
}

// While a database is away each open page asks again every two seconds. The log has one
// record when reads begin to fail, and one when they work again.
func TestALostDatabaseIsLoggedOnce(t *testing.T) {
	t.Parallel()
	pool, away := switched(t, filled(t))
	cfg := shop(pool)
	cfg.Fresh = time.Nanosecond
	var text *bytes.Buffer
	cfg.Logger, text = logged()
	h := handler(t, cfg)
	for _, gone := range []bool{true, false, true} {
		away.Store(gone)
		for range 3 {
			get(t, h, "/shop/overview")
		}
	}
	require.Equal(t, 2, strings.Count(text.String(), "console cannot read"))
	require.Equal(t, 1, strings.Count(text.String(), "console reads again"))
	require.Equal(t, 3, strings.Count(text.String(), "\n"), text)
}
