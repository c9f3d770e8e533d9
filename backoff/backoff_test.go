package backoff_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
)

// Operators set their alerts by the documented table. If the delay doubled too early or
// too late, jobs would be retried sooner or hours later than documented.
func TestExponentialFollowsTheDocumentedTable(t *testing.T) {
	t.Parallel()

	table := map[int]int64{
		1: 10, 2: 20, 3: 40, 4: 80, 5: 160, 6: 320, 7: 640, 8: 1280, 9: 2560, 10: 5120, 11: 10240,
		12: 10240, 13: 10240, 100: 10240, 501: 10240, math.MaxInt: 10240,
	}
	for attempts, want := range table {
		require.Equal(t, want, backoff.Exponential{}.DelaySec(attempts, 10), "attempts %d", attempts)
	}
}

// For any values of a row and a setting, scheduled_at must be within the range of
// timestamptz. A delay that overflowed would be in the past, and the job retried at once.
func TestExponentialHoldsWhatGoesIn(t *testing.T) {
	t.Parallel()
	const tenYears = 315360000

	tests := map[string]struct {
		attempts int
		base     int64
		want     int64
	}{
		"exponent 9":                              {10, 3, 3 * 512},
		"exponent 10":                             {11, 3, 3 * 1024},
		"exponent 11 is held at 10":               {12, 3, 3 * 1024},
		"exponent 500 is held at 10":              {501, 3, 3 * 1024},
		"attempts 0 count as 1":                   {0, 7, 7},
		"negative attempts count as 1":            {-1, 7, 7},
		"the smallest attempts count as 1":        {math.MinInt, 7, 7},
		"base 0":                                  {5, 0, 0},
		"a negative base counts as 0":             {5, -1, 0},
		"the smallest base counts as 0":           {11, math.MinInt64, 0},
		"ten years, first attempt":                {1, tenYears, tenYears},
		"ten years, eleventh attempt":             {11, tenYears, backoff.MaxSec},
		"a second more, tenth attempt":            {10, tenYears + 1, (tenYears + 1) * 512},
		"a second more, eleventh attempt":         {11, tenYears + 1, backoff.MaxSec},
		"a base at the cap":                       {1, backoff.MaxSec, backoff.MaxSec},
		"a base a second below the cap":           {1, backoff.MaxSec - 1, backoff.MaxSec - 1},
		"half the cap, doubled":                   {2, backoff.MaxSec / 2, backoff.MaxSec},
		"a second more than half, doubled":        {2, backoff.MaxSec/2 + 1, backoff.MaxSec},
		"a second less than half, doubled":        {2, backoff.MaxSec/2 - 1, backoff.MaxSec - 2},
		"a base above the cap":                    {1, backoff.MaxSec + 1, backoff.MaxSec},
		"the largest base":                        {1, math.MaxInt64, backoff.MaxSec},
		"the largest base, doubled ten times":     {500, math.MaxInt64, backoff.MaxSec},
		"a base whose doublings overflow to zero": {11, 1 << 54, backoff.MaxSec},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, backoff.Exponential{}.DelaySec(test.attempts, test.base))
		})
	}
	require.Equal(t, int64(tenYears*1024), int64(backoff.MaxSec))
}

// A function must get both numbers in the right order, and its result must be returned
// unchanged.
func TestPolicyFuncPassesEverythingThrough(t *testing.T) {
	t.Parallel()

	policy := backoff.PolicyFunc(func(attempts int, baseSec int64) int64 { return int64(attempts)*1000 - baseSec })
	require.EqualValues(t, 2993, policy.DelaySec(3, 7))
	require.EqualValues(t, -4000, policy.DelaySec(-4, 0), "it is the reaper that holds it")
}

// For any attempts and base the delay is within its bounds, and with more attempts it is
// never shorter.
func FuzzExponential(f *testing.F) {
	f.Add(1, int64(10))
	f.Add(0, int64(-1))
	f.Add(12, int64(math.MaxInt64))
	f.Add(math.MinInt, int64(math.MinInt64))
	f.Add(math.MaxInt, int64(backoff.MaxSec>>10)+1)
	f.Fuzz(func(t *testing.T, attempts int, baseSec int64) {
		delay := backoff.Exponential{}.DelaySec(attempts, baseSec)
		require.GreaterOrEqual(t, delay, int64(0))
		require.LessOrEqual(t, delay, int64(backoff.MaxSec))
		require.GreaterOrEqual(t, delay, min(max(baseSec, 0), backoff.MaxSec), "never below the base")

		if attempts < math.MaxInt {
			next := backoff.Exponential{}.DelaySec(attempts+1, baseSec)
			require.GreaterOrEqual(t, next, delay)
			require.LessOrEqual(t, next, 2*delay)
		}
	})
}

func ExampleExponential() {
	for attempts := 1; attempts <= 12; attempts++ {
		fmt.Print(backoff.Exponential{}.DelaySec(attempts, 10), " ")
	}
	// Output: 10 20 40 80 160 320 640 1280 2560 5120 10240 10240
}

func ExamplePolicyFunc() {
	// Two attempts soon, then once a day.
	var policy backoff.Policy = backoff.PolicyFunc(func(attempts int, baseSec int64) int64 {
		if attempts <= 2 {
			return baseSec
		}
		return 24 * 60 * 60
	})
	for attempts := 1; attempts <= 4; attempts++ {
		fmt.Print(policy.DelaySec(attempts, 10), " ")
	}
	// Output: 10 10 86400 86400
}
