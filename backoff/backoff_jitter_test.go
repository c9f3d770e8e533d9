package backoff_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
)

// Jobs that failed together must not all be retried in one second. No delay may be longer
// than without jitter, or shorter than the configured fraction.
func TestJitterSpreadsTheDelayBelowItsFullLength(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		jitter   float64
		attempts int
		base     int64
		least    int64
		most     int64
	}{
		"half of ten seconds":               {0.5, 1, 10, 5, 10},
		"a quarter of the eleventh attempt": {0.25, 11, 10, 7680, 10240},
		"all of it":                         {1, 3, 10, 0, 40},
		"a tenth, to the whole second":      {0.1, 1, 15, 14, 15},
		"less than a second of it":          {0.01, 1, 10, 10, 10},
		"none":                              {0, 11, 10, 10240, 10240},
		"of nothing":                        {1, 5, 0, 0, 0},
		"of the cap":                        {0.5, 11, math.MaxInt64, backoff.MaxSec / 2, backoff.MaxSec},
		"all of the cap":                    {1, 11, math.MaxInt64, 0, backoff.MaxSec},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := backoff.Exponential{Jitter: test.jitter}
			require.NoError(t, policy.Validate())

			const draws = 20_000
			drawn := map[int64]bool{}
			for range draws {
				delay := policy.DelaySec(test.attempts, test.base)
				require.GreaterOrEqual(t, delay, test.least)
				require.LessOrEqual(t, delay, test.most)
				drawn[delay] = true
			}
			kinds := test.most - test.least + 1
			if kinds < 100 {
				require.Len(t, drawn, int(kinds), "each second of the range is drawn, its ends too")
			} else {
				require.Greater(t, len(drawn), int(min(kinds, draws)/2), "many seconds are drawn")
			}
		})
	}
}

// With an uneven distribution many jobs would still be retried together.
func TestJitterIsEven(t *testing.T) {
	t.Parallel()

	const draws, kinds = 100_000, 10
	counts := map[int64]int{}
	for range draws {
		counts[backoff.Exponential{Jitter: 0.9}.DelaySec(1, kinds)]++
	}
	require.Len(t, counts, kinds)
	for delay, count := range counts {
		// Twenty standard deviations: sqrt(100,000 * 0.1 * 0.9) is 95.
		require.InDelta(t, draws/kinds, count, 1900, "%d seconds", delay)
	}
}

// A jitter that is a percentage, or the result of a division by zero, must be an error of
// New. Without New a delay must still be within its bounds.
func TestJitterOutsideItsRangeIsAFault(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		jitter float64
		faulty bool
		least  int64
	}{
		"zero":                  {0, false, 100},
		"zero with a sign":      {math.Copysign(0, -1), false, 100},
		"the smallest fraction": {math.SmallestNonzeroFloat64, false, 100},
		"one":                   {1, false, 0},
		"just above one":        {math.Nextafter(1, 2), true, 0},
		"just below zero":       {-math.SmallestNonzeroFloat64, true, 100},
		"a percentage":          {50, true, 0},
		"negative":              {-0.5, true, 100},
		"not a number":          {math.NaN(), true, 100},
		"infinite":              {math.Inf(1), true, 0},
		"minus infinity":        {math.Inf(-1), true, 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := backoff.Exponential{Jitter: test.jitter}
			require.Equal(t, test.faulty, policy.Validate() != nil)
			for range 1000 {
				delay := policy.DelaySec(1, 100)
				require.GreaterOrEqual(t, delay, test.least)
				require.LessOrEqual(t, delay, int64(100))
			}
		})
	}
}

// Jitter only shortens, for any input, so the longest delay stays the maximum.
func FuzzJitter(f *testing.F) {
	f.Add(1, int64(10), 0.5)
	f.Add(11, int64(math.MaxInt64), 1.0)
	f.Add(-1, int64(-1), math.NaN())
	f.Add(3, int64(backoff.MaxSec), math.Inf(1))
	f.Add(500, int64(1), -0.1)
	f.Fuzz(func(t *testing.T, attempts int, baseSec int64, jitter float64) {
		full := backoff.Exponential{}.DelaySec(attempts, baseSec)
		policy := backoff.Exponential{Jitter: jitter}
		delay := policy.DelaySec(attempts, baseSec)
		require.GreaterOrEqual(t, delay, int64(0))
		require.LessOrEqual(t, delay, full)
		if policy.Validate() == nil {
			require.GreaterOrEqual(t, delay, full-int64(float64(full)*jitter))
		}
	})
}

func ExampleExponential_Validate() {
	err := errors.Join(
		backoff.Exponential{Jitter: 0.5}.Validate(),
		backoff.Exponential{Jitter: 50}.Validate(),
	)
	fmt.Println(err)
	// Output: backoff: jitter 50 is not a fraction from 0 to 1
}
