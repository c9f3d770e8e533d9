package stat_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/stat"
)

// A goal is reached or missed by a median. One that is off by a place would call
// red what is green.
func TestSpread(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		values []float64
		want   stat.Spread
	}{
		"one value is all there is":               {[]float64{3}, stat.Spread{Low: 3, Median: 3, High: 3}},
		"an odd number has a middle":              {[]float64{5, 1, 3}, stat.Spread{Low: 2, Median: 3, High: 4}},
		"an even number has the mean of two":      {[]float64{4, 1, 3, 2}, stat.Spread{Low: 1.75, Median: 2.5, High: 3.25}},
		"one wild value does not move the middle": {[]float64{1, 1, 1, 1, 1000}, stat.Spread{Low: 1, Median: 1, High: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, stat.Of(test.values))
		})
	}
}

// A sample's order is that of its rounds, by which ratios are made later.
func TestSpreadLeavesTheOrderOfASample(t *testing.T) {
	t.Parallel()
	values := []float64{3, 1, 2}

	stat.Of(values)

	require.Equal(t, []float64{3, 1, 2}, values)
}

// Nothing measured is no figure, and surely not zero, which may be a goal.
func TestSpreadOfNothingIsNoNumber(t *testing.T) {
	t.Parallel()

	spread := stat.Of(nil)

	require.True(t, math.IsNaN(spread.Median))
	require.True(t, math.IsNaN(spread.Low))
	require.True(t, math.IsNaN(spread.High))
}

// A machine that is slow for a while is slow for both. Were the medians divided
// instead, a slow while that hits more rounds of one would make the ratio.
func TestRatiosAreMadeRoundByRound(t *testing.T) {
	t.Parallel()

	require.Equal(t, []float64{2, 2, 2}, stat.Ratios([]float64{2, 200, 4}, []float64{1, 100, 2}))
	require.Equal(t, []float64{2}, stat.Ratios([]float64{2, 4}, []float64{1}))
}

// Rates are made of the seconds of a sample.
func TestEach(t *testing.T) {
	t.Parallel()
	seconds := []float64{1, 2}

	require.Equal(t, []float64{1000, 500}, stat.Each(seconds, func(s float64) float64 { return 1000 / s }))
	require.Equal(t, []float64{1, 2}, seconds)
}

// The slowest of a sample are at its end. A percentile of values in the order in which they
// were measured would be any of them.
func TestQuantileIsOfSortedValues(t *testing.T) {
	t.Parallel()
	values := []float64{101, 1, 51}

	require.InDelta(t, 100, stat.Quantile(values, 0.99), 1e-9)
	require.InDelta(t, 51, stat.Quantile(values, 0.5), 1e-9)
	require.Equal(t, []float64{101, 1, 51}, values)
}
