package soak

import "github.com/lease-governance/leasereaper/internal/bench/stat"

// Phase is a third of a soak.
type Phase struct {
	Name    string
	Samples []Sample
	seconds float64
}

// Phases returns the three thirds.
func (q Queue) Phases() []Phase {
	var list []Phase
	from, each := 0.0, len(q.Samples)/3
	for i, name := range []string{"before", "open", "after"} {
		samples := q.Samples[i*each : (i+1)*each]
		to := samples[each-1].Seconds
		list = append(list, Phase{name, samples, to - from})
		from = to
	}
	return list
}

// Last is the sample at the end.
func (p Phase) Last() Sample { return p.Samples[len(p.Samples)-1] }

// Sum adds up a figure of the samples.
func (p Phase) Sum(of func(Sample) int64) (sum int64) {
	for _, s := range p.Samples {
		sum += of(s)
	}
	return sum
}

// PerSecond is the sum of a figure, a second.
func (p Phase) PerSecond(of func(Sample) int64) float64 { return float64(p.Sum(of)) / p.seconds }

// Most is the largest value of a figure.
func (p Phase) Most(of func(Sample) int64) (most int64) {
	for _, s := range p.Samples {
		most = max(most, of(s))
	}
	return most
}

// Times is the median of the samples' medians, and the largest 99th percentile. Samples
// without a duration do not count.
func (p Phase) Times(of func(Sample) Times) Times {
	var all Times
	var medians []float64
	for _, s := range p.Samples {
		times := of(s)
		if times.Count == 0 {
			continue
		}
		all.Count += times.Count
		all.P99 = max(all.P99, times.P99)
		medians = append(medians, times.Median)
	}
	if all.Count > 0 {
		all.Median = stat.Quantile(medians, 0.5)
	}
	return all
}

// Held returns from when to when the old transaction was open, in seconds. It was opened
// after the sample before the first that shows it.
func (q Queue) Held() (from, to float64) {
	for i, s := range q.Samples {
		switch {
		case !s.Held:
			continue
		case to == 0 && i > 0:
			from = q.Samples[i-1].Seconds
		}
		to = s.Seconds
	}
	return from, to
}
