package gates_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
)

// The window is checked after the gates. Its reason has the stored text, so that the
// operator finds it.
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

// A window with an invalid end must not count as open, nor an unset window as closed.
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

// If an end is read wrongly, the window closes too early or stays open.
func TestWindowTakesATimeWithItsOffset(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ value, want string }{
		"RFC 3339 in UTC":              {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
		"RFC 3339 in lower case":       {"2026-01-02t03:04:05z", "2026-01-02T03:04:05Z"},
		"RFC 3339 with an offset":      {"2026-01-02T03:04:05.5+05:30", "2026-01-01T21:34:05.5Z"},
		"as PostgreSQL prints it":      {"2026-01-02 03:04:05.678901+00", "2026-01-02T03:04:05.678901Z"},
		"west of Greenwich":            {"2026-01-02 03:04:05-03", "2026-01-02T06:04:05Z"},
		"an offset with minutes":       {"2026-01-02 03:04:05-03:30", "2026-01-02T06:34:05Z"},
		"an offset with seconds":       {"1930-01-02 03:04:05+00:19:32", "1930-01-02T02:44:33Z"},
		"nanoseconds, rounded":         {"2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123457Z"},
		"with space around it":         {" \t\n\v\f\r2026-01-02 03:04:05Z\r\f\v\n\t ", "2026-01-02T03:04:05Z"},
		"a leap day":                   {"2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z"},
		"the first year":               {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
		"the last of the years":        {"9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"},
		"the largest offset eastwards": {"2026-01-02 03:04:05+15:59:59", "2026-01-01T11:04:06Z"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := window(test.value).Window()
			require.NoError(t, err)
			require.True(t, got.Valid)
			require.Equal(t, pgtype.Finite, got.InfinityModifier)
			require.Equal(t, test.want, got.Time.Format(time.RFC3339Nano))
			require.Equal(t, time.UTC, got.Time.Location())
		})
	}
}

func window(value string) gates.Values { return gates.Values{gates.WindowUntil: value} }

// infinity and -infinity are ends too. Without an end the window never ends.
func TestWindowKnowsInfinityAndUnset(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		values gates.Values
		want   pgtype.Timestamptz
	}{
		"unset":             {gates.Values{substrate: "true"}, pgtype.Timestamptz{}},
		"nothing known":     {nil, pgtype.Timestamptz{}},
		"infinity":          {window(" Infinity\n"), pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}},
		"negative infinity": {window("-INFINITY"), pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.values.Window()
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// If the end of a window depended on its reader or on the time of the read, it would end
// for one reaper and not for another, or never.
func TestWindowRefusesWhatIsNoTimeWithItsOffset(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ value string }{
		"empty":                         {""},
		"white":                         {" \t "},
		"a date":                        {"2026-01-02"},
		"no offset":                     {"2026-01-02 03:04:05"},
		"a zone's name":                 {"2026-01-02 03:04:05 Europe/Berlin"},
		"a zone's abbreviation":         {"2026-01-02 03:04:05 CET"},
		"no seconds":                    {"2026-01-02T03:04Z"},
		"no time":                       {"2026-01-02Z"},
		"tomorrow":                      {"tomorrow"},
		"now":                           {"now"},
		"now()":                         {"now()"},
		"epoch":                         {"epoch"},
		"a boolean":                     {"true"},
		"a number":                      {"1767323045"},
		"an interval":                   {"1 hour"},
		"the German way":                {"02.01.2026 03:04:05+00"},
		"the American way":              {"01/02/2026 03:04:05+00"},
		"a month that is none":          {"2026-13-02T03:04:05Z"},
		"a day that is none":            {"2026-02-29T03:04:05Z"},
		"an hour that is none":          {"2026-01-02T24:00:00Z"},
		"a leap second":                 {"2026-01-02T23:59:60Z"},
		"the year 0":                    {"0000-01-02T03:04:05Z"},
		"a year of five digits":         {"10000-01-02T03:04:05Z"},
		"before Christ":                 {"2026-01-02 03:04:05+00 BC"},
		"a sign before the year":        {"+2026-01-02T03:04:05Z"},
		"an hour of one digit":          {"2026-01-02T3:04:05Z"},
		"a comma":                       {"2026-01-02T03:04:05,5Z"},
		"a point without digits":        {"2026-01-02T03:04:05.Z"},
		"too fine":                      {"2026-01-02T03:04:05.1234567890Z"},
		"an offset of one digit":        {"2026-01-02T03:04:05+1"},
		"an offset of sixteen hours":    {"2026-01-02T03:04:05+16"},
		"an offset of sixty minutes":    {"2026-01-02T03:04:05+05:60"},
		"an offset without a colon":     {"2026-01-02T03:04:05+0530"},
		"a space before the offset":     {"2026-01-02T03:04:05 +00"},
		"two spaces before the time":    {"2026-01-02  03:04:05+00"},
		"something behind it":           {"2026-01-02T03:04:05Z."},
		"another line behind it":        {"2026-01-02T03:04:05Z\nx"},
		"a NUL behind it":               {"2026-01-02T03:04:05Z\x00"},
		"a no-break space around it":    {"\u00a02026-01-02T03:04:05Z"},
		"digits of another script":      {"٢٠٢٦-01-02T03:04:05Z"},
		"a long s, for Unicode's sake":  {"infinityſ"},
		"a positive infinity":           {"+infinity"},
		"a short infinity":              {"inf"},
		"quoted":                        {`"2026-01-02T03:04:05Z"`},
		"huge":                          {strings.Repeat("2026-01-02T03:04:05Z", 1<<16)},
		"a minus that is not a hyphen":  {"−infinity"},
		"a time that another day holds": {"2026-04-31T03:04:05Z"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := window(test.value).Window()
			var valueErr *gates.ValueError
			require.ErrorAs(t, err, &valueErr)
			require.Equal(t, "queue.lease.reaper_window_until", valueErr.Key)
			require.Equal(t, test.value, valueErr.Value)
			require.Zero(t, got)
			require.Less(t, len(err.Error()), 500)
		})
	}
}

// For any text, the end is a time that is read again as the same time after it is written,
// or the error has the value.
func FuzzWindow(f *testing.F) {
	for _, seed := range []string{
		"2026-01-02T03:04:05Z", "2026-01-02 03:04:05.678+05:30", "infinity", "-infinity", " 0001-01-01t00:00:00-15:59:59\n",
		"9999-12-31T23:59:59.999999999Z", "", "tomorrow", "2026-02-29 00:00:00+00", "2026-01-02T03:04:05,5Z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		until, err := window(value).Window()
		if err != nil {
			var valueErr *gates.ValueError
			require.ErrorAs(t, err, &valueErr)
			require.Equal(t, gates.ValueError{Key: gates.WindowUntil, Value: value}, publicParts(valueErr))
			require.Zero(t, until)
			return
		}
		require.True(t, until.Valid)
		if until.InfinityModifier != pgtype.Finite || until.Time.Year() < 1 || until.Time.Year() > 9999 {
			return // an offset may lead out of the years
		}
		require.Zero(t, until.Time.Nanosecond()%1000)
		again, err := window(until.Time.Format(time.RFC3339Nano)).Window()
		require.NoError(t, err)
		require.Equal(t, until, again)
	})
}
