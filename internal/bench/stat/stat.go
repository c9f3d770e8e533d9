// Package stat is the arithmetic of the benchmarks: medians, quartiles and the
// ratios of two samples that were taken round by round. It does no I/O.
package stat

import (
	"math"
	"slices"
)

// Spread is the middle of a sample and the range that holds its middle half.
type Spread struct {
	Low    float64 `json:"low"` // the first quartile
	Median float64 `json:"median"`
	High   float64 `json:"high"` // the third quartile
}

// Of returns the spread of values, in any order. Without values it is NaN.
func Of(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	return Spread{
		Low:    quantile(sorted, 0.25),
		Median: quantile(sorted, 0.5),
		High:   quantile(sorted, 0.75),
	}
}

// Exactly is the spread of a figure that was counted, not sampled.
func Exactly(value float64) Spread { return Spread{value, value, value} }

// Quantile returns what a share of the values, in any order, is at most. Without
// values it is NaN.
func Quantile(values []float64, share float64) float64 {
	return quantile(slices.Sorted(slices.Values(values)), share)
}

// quantile interpolates between the two values beside a position.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	position := q * float64(len(sorted)-1)
	below := int(position)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (position-float64(below))*(sorted[above]-sorted[below])
}

// Ratios divides the values of two samples round by round: what the machine was
// busy with in a round has touched both. Rounds that only one of them has are
// left out.
func Ratios(over, under []float64) []float64 {
	ratios := make([]float64, min(len(over), len(under)))
	for i := range ratios {
		ratios[i] = over[i] / under[i]
	}
	return ratios
}

// Each returns the values that f makes of a sample's.
func Each(values []float64, f func(float64) float64) []float64 {
	made := make([]float64, len(values))
	for i, value := range values {
		made[i] = f(value)
	}
	return made
}
