package gates_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// The window is the last of the gates, and its reason is what stands there, so
// that the operator finds it again.
func TestClosedJudgesTheWindowLast(t *testing.T) {
	t.Parallel()
	const past, future = "2026-01-02 03:04:05+00", "2026-01-02T03:04:07Z"

	tests := map[string]struct {
		first  string // of the three gates
		until  string
		reason string
	}{
		"a passed window":                       {"on", past, "queue.lease.reaper_window_until=2026-01-02 03:04:05+00"},
		"a passed window with space around":     {"on", " " + past, "queue.lease.reaper_window_until= 2026-01-02 03:04:05+00"},
		"a passed window behind a closed gate":  {"off", past, "queue.job_substrate.enabled=false"},
		"a window in the future":                {"on", future, ""},
		"a window's very end":                   {"on", "2026-01-02T03:04:06Z", ""},
		"a microsecond before":                  {"on", "2026-01-02T03:04:05.999999Z", "queue.lease.reaper_window_until=2026-01-02T03:04:05.999999Z"},
		"the same moment elsewhere":             {"on", "2026-01-02 05:04:06+02", ""},
		"infinity":                              {"on", "infinity", ""},
		"negative infinity":                     {"on", "-Infinity", "queue.lease.reaper_window_until=-Infinity"},
		"garbage behind a closed gate is unmet": {"off", "soon", "queue.job_substrate.enabled=false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := gates.Values{
				substrate: test.first, enabled: "true", dryRun: "false",
				gates.WindowUntil: test.until, gates.Now: "2026-01-02T03:04:06Z",
			}
			reason, err := values.Closed()
			require.NoError(t, err)
			require.Equal(t, test.reason, reason)

			if test.first == "on" {
				open, err := values.Gate(gates.WindowUntil)
				require.NoError(t, err)
				require.Equal(t, reason == "", open)
			}
		})
	}
}

// A window that cannot be judged must not pass for an open one.
func TestClosedNeedsAClockForAWindow(t *testing.T) {
	t.Parallel()
	values := gates.Values{substrate: "on", enabled: "on", dryRun: "off", gates.WindowUntil: "infinity"}
	_, err := values.Closed()
	require.ErrorIs(t, err, gates.ErrNow)
	open, err := values.Gate(gates.WindowUntil)
	require.ErrorIs(t, err, gates.ErrNow)
	require.False(t, open)

	values[gates.Now] = "noon"
	_, err = values.Closed()
	var valueErr *gates.ValueError
	require.ErrorAs(t, err, &valueErr)
	require.Equal(t, gates.Now, valueErr.Key)

	values[gates.WindowUntil] = "soon"
	_, err = values.Closed()
	require.ErrorAs(t, err, &valueErr)
	require.Equal(t, gates.WindowUntil, valueErr.Key)

	open, err = gates.Values{}.Gate(gates.WindowUntil)
	require.NoError(t, err)
	require.True(t, open, "no window closes nothing")
}

// Values from a flag service, which may be a cached answer with an old clock in
// it, get the clock of this transaction, and the cache stays as it is. Where there
// is no window, nobody asks.
func TestDatedGivesTheTransactionsClock(t *testing.T) {
	t.Parallel()
	tx := begin(t, pgtest.Empty(t))
	_, err := tx.Exec(t.Context(), `set local timezone = '<X>-3:04'; set local datestyle = 'German'`)
	require.NoError(t, err)
	var want string
	require.NoError(t, tx.QueryRow(t.Context(),
		`select to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`).Scan(&want))
	cached := gates.Values{gates.WindowUntil: "infinity", gates.Now: "2001-01-01T00:00:00Z"}

	dated, err := cached.Dated(t.Context(), tx)

	require.NoError(t, err)
	require.Equal(t, "2001-01-01T00:00:00Z", cached[gates.Now])
	require.Equal(t, moment(t, want), moment(t, dated[gates.Now]))
	require.Equal(t, "infinity", dated[gates.WindowUntil])

	unset := gates.Values{substrate: "true"}
	same, err := unset.Dated(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, unset, same)

	require.NoError(t, tx.Rollback(t.Context()))
	dated, err = cached.Dated(t.Context(), tx)
	require.ErrorIs(t, err, pgx.ErrTxClosed)
	require.Nil(t, dated)
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return parsed
}

// Each source that reads the database says which clock judges the window: that of
// the transaction, whatever the session's zone and style.
func TestSourcesGiveTheTransactionsClockBesideAWindow(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	set(t, pool, map[string]string{gates.WindowUntil: "infinity", substrate: "true"})
	tx := begin(t, pool)
	_, err := tx.Exec(t.Context(), `set local timezone = 'Asia/Kathmandu'; set local datestyle = 'SQL';
		set local `+gates.WindowUntil+` = 'infinity'`)
	require.NoError(t, err)
	var want time.Time
	require.NoError(t, tx.QueryRow(t.Context(), `select now()`).Scan(&want))

	for _, source := range []gates.Source{gates.Table{}, gates.CurrentSetting{}} {
		values, err := source.Read(t.Context(), tx, gates.Keys())
		require.NoError(t, err)
		require.Equal(t, want.UTC(), moment(t, values[gates.Now]), "%T", source)
		reason, err := values.Closed()
		require.NoError(t, err)
		require.NotContains(t, reason, gates.WindowUntil)

		values, err = source.Read(t.Context(), tx, []string{substrate})
		require.NoError(t, err)
		require.NotContains(t, values, gates.Now, "%T", source)
	}
}
