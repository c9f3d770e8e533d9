package pgtext_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Keys of a user's table may have any text. If an element ended too early, one key would
// become two, and the second might be another job's.
func TestArrayHoldsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)

	tests := map[string]struct{ texts []string }{
		"none":                   {[]string{}},
		"plain ones":             {[]string{"a", "b"}},
		"an empty one":           {[]string{"", "b", ""}},
		"the word null":          {[]string{"null", "NULL"}},
		"delimiters":             {[]string{"a,b", "{a}", "}", "{"}},
		"quotes":                 {[]string{`a"b`, `"`, `""`, `'`}},
		"backslashes":            {[]string{`a\b`, `\`, `\\`, `\"`, `"\`}},
		"white space":            {[]string{" a ", "\t", "\n", "\u00a0", "\v"}},
		"more than one byte":     {[]string{"☃", "é", "𝔘"}},
		"nothing but delimiters": {[]string{`","`, `{"a","b"}`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			array := pgtext.Array(len(test.texts), func(i int) string { return test.texts[i] })
			var got []string
			require.NoError(t, pool.QueryRow(t.Context(), `select $1::text[]`, array).Scan(&got))
			require.Equal(t, test.texts, got)
		})
	}
}

// Attempts and delays may have the limits of their columns and of bigint.
func TestIntegersHoldWhatTheyWereGiven(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)

	for _, numbers := range [][]int64{{}, {0}, {1, -1, 10}, {math.MaxInt64, math.MinInt64, 0}} {
		array := pgtext.Integers(len(numbers), func(i int) int64 { return numbers[i] })
		var got []int64
		require.NoError(t, pool.QueryRow(t.Context(), `select $1::bigint[]`, array).Scan(&got))
		require.Equal(t, numbers, got)
	}
}
