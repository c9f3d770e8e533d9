package gates_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
)

// The window is the last of the gates, and its reason is what stands there, so
// that the operator finds it again.
func TestRefusalJudgesTheWindowLast(t *testing.T) {
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
				gates.WindowUntil: test.until,
			}
			now := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
			reason, err := values.Refusal(now)
			require.NoError(t, err)
			require.Equal(t, test.reason, reason)

			if test.first == "on" {
				open, err := values.Gate(gates.WindowUntil, now)
				require.NoError(t, err)
				require.Equal(t, reason == "", open)
			}
		})
	}
}

// A window whose end is no time must not pass for an open one, nor an unset one for a
// closed one.
func TestRefusalNeedsAWindowsEndToBeATime(t *testing.T) {
	t.Parallel()
	values := gates.Values{substrate: "on", enabled: "on", dryRun: "off", gates.WindowUntil: "soon"}
	_, err := values.Refusal(time.Now())
	var valueErr *gates.ValueError
	require.ErrorAs(t, err, &valueErr)
	require.Equal(t, gates.WindowUntil, valueErr.Key)
	open, err := values.Gate(gates.WindowUntil, time.Now())
	require.ErrorAs(t, err, &valueErr)
	require.False(t, open)

	open, err = gates.Values{}.Gate(gates.WindowUntil, time.Now())
	require.NoError(t, err)
	require.True(t, open, "no window closes nothing")
}
