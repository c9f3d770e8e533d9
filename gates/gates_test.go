package gates_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
)

// An operator with several closed gates sees one after the other. With another order or
// another default they would change the wrong gate, or a gate would be open that nobody
// has opened.
func TestRefusalNamesTheFirstClosedGate(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		values gates.Values
		reason string
	}{
		"nothing is known":                         {nil, "queue.job_substrate.enabled=false"},
		"nothing is set":                           {gates.Values{}, "queue.job_substrate.enabled=false"},
		"all but the first are open":               {gates.Values{enabled: "true", dryRun: "false"}, "queue.job_substrate.enabled=false"},
		"the first is closed by a word":            {gates.Values{substrate: " OFF ", enabled: "1", dryRun: "0"}, "queue.job_substrate.enabled=false"},
		"only the first is open":                   {gates.Values{substrate: "true"}, "queue.lease.reaper_enabled=false"},
		"the second is unset":                      {gates.Values{substrate: "true", dryRun: "false"}, "queue.lease.reaper_enabled=false"},
		"the second is closed":                     {gates.Values{substrate: "true", enabled: "n", dryRun: "false"}, "queue.lease.reaper_enabled=false"},
		"the second and the third are closed":      {gates.Values{substrate: "true", enabled: "n", dryRun: "true"}, "queue.lease.reaper_enabled=false"},
		"the third is unset":                       {gates.Values{substrate: "true", enabled: "true"}, "queue.lease.reaper_dry_run_only=true"},
		"the third is closed":                      {gates.Values{substrate: "true", enabled: "true", dryRun: "yes"}, "queue.lease.reaper_dry_run_only=true"},
		"all are open":                             {gates.Values{substrate: "t", enabled: "\ton\n", dryRun: "F"}, ""},
		"a bad base is no gate's business":         {gates.Values{substrate: "t", enabled: "t", dryRun: "f", gates.BackoffBaseSec: "soon"}, ""},
		"a closed gate hides a later bad value":    {gates.Values{substrate: "false", enabled: "maybe", dryRun: "maybe"}, "queue.job_substrate.enabled=false"},
		"an unset gate hides a later bad value":    {gates.Values{substrate: "true", dryRun: "maybe"}, "queue.lease.reaper_enabled=false"},
		"a key in another case is another setting": {gates.Values{strings.ToUpper(substrate): "true"}, "queue.job_substrate.enabled=false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason, err := test.values.Refusal(time.Now())
			require.NoError(t, err)
			require.Equal(t, test.reason, reason)
		})
	}
}

// A typo in a setting must not start a reaper. The operator must see the key and the
// value.
func TestClosedNamesTheValueThatIsNoBoolean(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		values     gates.Values
		key, value string
	}{
		"in the first gate":            {gates.Values{substrate: "ture", enabled: "true", dryRun: "false"}, substrate, "ture"},
		"in the second gate":           {gates.Values{substrate: "true", enabled: " yess ", dryRun: "false"}, enabled, " yess "},
		"in the third gate":            {gates.Values{substrate: "true", enabled: "true", dryRun: "2"}, dryRun, "2"},
		"before a closed gate":         {gates.Values{substrate: "o", enabled: "false", dryRun: "true"}, substrate, "o"},
		"in several, the first counts": {gates.Values{substrate: "true", enabled: "b", dryRun: "c"}, enabled, "b"},
		"an empty value is not unset":  {gates.Values{substrate: "true", enabled: "true", dryRun: ""}, dryRun, ""},
		"nor is a white one":           {gates.Values{substrate: " \t"}, substrate, " \t"},
		"one that is not UTF-8":        {gates.Values{substrate: "t\xff"}, substrate, "t\xff"},
		"a huge one":                   {gates.Values{substrate: huge}, substrate, huge},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason, err := test.values.Refusal(time.Now())
			var valueErr *gates.ValueError
			require.ErrorAs(t, err, &valueErr)
			require.Equal(t, test.key, valueErr.Key)
			require.Equal(t, test.value, valueErr.Value)
			require.Empty(t, reason)
			require.Less(t, len(err.Error()), 500, "a value may be as long as a text, a log line not")
		})
	}
}

var huge = strings.Repeat("true", 1<<18)

// If Keys lacked a key, a source would not read it, and it would count as unset.
func TestKeysAreTheGatesInTheirOrderTheWindowAndTheBase(t *testing.T) {
	t.Parallel()
	keys := gates.Keys()
	require.Equal(t, []string{
		"queue.job_substrate.enabled",
		"queue.lease.reaper_enabled",
		"queue.lease.reaper_dry_run_only",
		"queue.lease.reaper_window_until",
		"queue.retry.backoff_base_sec",
	}, keys)

	slices.Reverse(keys)
	require.Equal(t, substrate, gates.Keys()[0], "a caller's list is the caller's own")
}

// Settings are typed by people. No value may crash a reaper, and only an exact boolean may
// open a gate.
func FuzzClosed(f *testing.F) {
	f.Add("true", "true", "false")
	f.Add(" ON\n", "\vy", "of")
	f.Add("yeſ", "1", "0")
	f.Add("", "t\x00", "\xff")
	f.Add("\u00a0true", "true\u0085", "falſe")
	f.Fuzz(func(t *testing.T, first, second, third string) {
		values := gates.Values{substrate: first, enabled: second, dryRun: third}
		reason, err := values.Refusal(time.Now())

		want, bad := expected(first, second, third)
		require.Equal(t, want, reason)
		if bad == "" {
			require.NoError(t, err)
			return
		}
		var valueErr *gates.ValueError
		require.ErrorAs(t, err, &valueErr)
		require.Equal(t, bad, valueErr.Key)
		require.Equal(t, values[bad], valueErr.Value)
	})
}

// expected returns the reason, or the key of an invalid value. It uses the list of the
// values that the server accepts.
func expected(values ...string) (reason, badKey string) {
	for i, key := range gates.Keys()[:3] {
		value := plain(values[i])
		isTrue := slices.Contains(strings.Fields("t tr tru true y ye yes on 1"), value)
		isFalse := slices.Contains(strings.Fields("f fa fal fals false n no of off 0"), value)
		switch {
		case !isTrue && !isFalse:
			return "", key
		case isTrue == (key == dryRun):
			return fmt.Sprintf("%s=%t", key, isTrue), ""
		}
	}
	return "", ""
}

// A tool that reads one gate must get the meaning of that gate.
func TestGateTellsOfOneGate(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		key, value string
		open       bool
	}{
		"an enabling gate that is true":  {gates.ReaperEnabled, "true", true},
		"an enabling gate that is false": {gates.SubstrateEnabled, "false", false},
		"the dry-run gate that is true":  {gates.DryRunOnly, "true", false},
		"the dry-run gate that is false": {gates.DryRunOnly, "false", true},
		"no gate":                        {gates.BackoffBaseSec, "true", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open, err := gates.Values{test.key: test.value}.Gate(test.key, time.Now())
			require.NoError(t, err)
			require.Equal(t, test.open, open)
			open, err = gates.Values{}.Gate(test.key, time.Now())
			require.NoError(t, err)
			require.False(t, open)
		})
	}
	_, err := gates.Values{gates.ReaperEnabled: "?"}.Gate(gates.ReaperEnabled, time.Now())
	var invalid *gates.ValueError
	require.ErrorAs(t, err, &invalid)
}

func ExampleValues_Refusal() {
	values := gates.Values{
		gates.SubstrateEnabled: "on",
		gates.ReaperEnabled:    "no",
	}
	fmt.Println(values.Refusal(time.Now()))

	values[gates.ReaperEnabled] = "perhaps"
	_, err := values.Refusal(time.Now())
	var valueErr *gates.ValueError
	if errors.As(err, &valueErr) {
		fmt.Printf("%s is set to %q\n", valueErr.Key, valueErr.Value)
	}
	// Output:
	// queue.lease.reaper_enabled=false <nil>
	// queue.lease.reaper_enabled is set to "perhaps"
}
