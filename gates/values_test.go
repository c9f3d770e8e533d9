package gates_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
)

// With a base that is read wrongly, every job is retried at once, or after years.
func TestBackoffBaseTakesWholeSecondsUpToTenYears(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		values gates.Values
		want   int64
	}{
		"unset":                      {gates.Values{substrate: "true"}, 10},
		"nothing known":              {nil, 10},
		"zero":                       {base("0"), 0},
		"one":                        {base("1"), 1},
		"ten years":                  {base("315360000"), 315360000},
		"with a sign":                {base("+7"), 7},
		"zero with a sign":           {base("-0"), 0},
		"with zeros before it":       {base("0000000000000000000000000000060"), 60},
		"with spaces around it":      {base(" \t\n\v\f\r30\r\f\v\n\t "), 30},
		"beside gates that are bad":  {gates.Values{substrate: "maybe", gates.BackoffBaseSec: "5"}, 5},
		"beside gates that are shut": {gates.Values{substrate: "false", gates.BackoffBaseSec: "5"}, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.values.BackoffBase()
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
	require.Equal(t, 315360000, gates.MaxBackoffBaseSec)
}

// A base with a typo must stop the reaper and not become another number.
func TestBackoffBaseRefusesWhatIsNotWholeSeconds(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ value string }{
		"a second more than ten years":   {"315360001"},
		"negative":                       {"-1"},
		"fractional":                     {"1.5"},
		"whole with a fraction":          {"10.0"},
		"with an exponent":               {"1e1"},
		"empty":                          {""},
		"white":                          {" \t "},
		"an infinity":                    {"Infinity"},
		"not a number":                   {"NaN"},
		"the largest bigint":             {"9223372036854775807"},
		"more than a bigint":             {"9223372036854775808"},
		"the smallest bigint":            {"-9223372036854775808"},
		"2^64 and ten":                   {"18446744073709551626"},
		"huge":                           {strings.Repeat("9", 1<<20)},
		"with a unit":                    {"10s"},
		"with a thousands separator":     {"1,000"},
		"with an underscore":             {"1_000"},
		"hexadecimal":                    {"0x10"},
		"two numbers":                    {"1 0"},
		"a sign apart":                   {"- 1"},
		"two signs":                      {"++1"},
		"a no-break space around it":     {"\u00a010"},
		"digits of another script":       {"١٠"},
		"digits of full width":           {"１０"},
		"a NUL in it":                    {"10\x00"},
		"a boolean":                      {"true"},
		"quoted":                         {`"10"`},
		"an interval":                    {"00:00:10"},
		"a minus that is not the hyphen": {"−1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := base(test.value).BackoffBase()
			var valueErr *gates.ValueError
			require.ErrorAs(t, err, &valueErr)
			require.Equal(t, "queue.retry.backoff_base_sec", valueErr.Key)
			require.Equal(t, test.value, valueErr.Value)
			require.Zero(t, got)
		})
	}
}

func base(value string) gates.Values { return gates.Values{gates.BackoffBaseSec: value} }

// For any text, the base is the number in the text and within its bounds, or the error has
// the value.
func FuzzBackoffBase(f *testing.F) {
	for _, seed := range []string{"10", " 0\n", "-1", "+5", "315360000", "315360001", "1.5", "", "0x1", "9223372036854775808", "\u00a01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		sec, err := base(value).BackoffBase()
		if err != nil {
			var valueErr *gates.ValueError
			require.ErrorAs(t, err, &valueErr)
			require.Equal(t, gates.ValueError{Key: gates.BackoffBaseSec, Value: value}, publicParts(valueErr))
			require.Zero(t, sec)
			require.False(t, isInBounds(value), "%q is a good base", value)
			return
		}
		require.GreaterOrEqual(t, sec, int64(0))
		require.LessOrEqual(t, sec, int64(gates.MaxBackoffBaseSec))
		require.True(t, isInBounds(value), "%q is no base", value)
		require.Equal(t, integer(value).Int64(), sec)
	})
}

// integer returns the whole number in value, or nil.
func integer(value string) *big.Int {
	digits := plain(value)
	unsigned := strings.TrimPrefix(strings.TrimPrefix(digits, "-"), "+")
	if unsigned == "" || strings.Trim(unsigned, "0123456789") != "" {
		return nil
	}
	number, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return nil
	}
	return number
}

func isInBounds(value string) bool {
	number := integer(value)
	return number != nil && number.Sign() >= 0 && number.Cmp(big.NewInt(gates.MaxBackoffBaseSec)) <= 0
}

func ExampleValues_BackoffBase() {
	sec, err := gates.Values{gates.BackoffBaseSec: " 30 "}.BackoffBase()
	fmt.Println(sec, err)
	_, err = gates.Values{gates.BackoffBaseSec: "soon"}.BackoffBase()
	fmt.Println(err != nil)
	// Output:
	// 30 <nil>
	// true
}

// A tool's check before it stores a setting must agree with that of an apply.
func TestCheckKnowsEachKey(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		key  string
		good []string
		bad  []string
	}{
		"the first gate":  {substrate, []string{"true", " off "}, []string{"", "maybe", "infinity", "10"}},
		"the second gate": {enabled, []string{"1", "no"}, []string{"2", "null"}},
		"the third gate":  {dryRun, []string{"T", "F"}, []string{"tf"}},
		"the window":      {gates.WindowUntil, []string{"infinity", "2026-01-02T03:04:05Z"}, []string{"", "true", "2026-01-02"}},
		"the base":        {gates.BackoffBaseSec, []string{"0", "315360000"}, []string{"", "-1", "true", "315360001"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, gates.Values{}.Check(test.key), "unset is right")
			for _, value := range test.good {
				require.NoError(t, gates.Values{test.key: value}.Check(test.key), value)
			}
			for _, value := range test.bad {
				var valueErr *gates.ValueError
				require.ErrorAs(t, gates.Values{test.key: value}.Check(test.key), &valueErr)
				require.Equal(t, gates.ValueError{Key: test.key, Value: value}, publicParts(valueErr))
			}
		})
	}
	for _, key := range []string{"", "now()", "queue.lease.duration_sec", strings.ToUpper(substrate)} {
		require.ErrorIs(t, gates.Values{key: "true"}.Check(key), gates.ErrKey)
	}
}
