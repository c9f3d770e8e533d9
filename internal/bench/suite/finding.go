package suite

import (
	"math"

	"github.com/lease-governance/leasereaper/internal/bench/stat"
)

// Finding is a figure, and whether it is what it should be.
type Finding struct {
	Scenario string      `json:"scenario"`
	What     string      `json:"what"`
	Value    stat.Spread `json:"value"`
	Unit     string      `json:"unit"`
	Goal     *Goal       `json:"goal,omitempty"` // nil: there is none
}

// Goal is what a figure's median should be.
type Goal struct {
	Most  bool    `json:"most"` // at most Bound, instead of at least
	Bound float64 `json:"bound"`
}

func atLeast(bound float64) *Goal { return &Goal{Bound: bound} }
func atMost(bound float64) *Goal  { return &Goal{Most: true, Bound: bound} }

// Reached reports whether a figure without a goal, or as good as its goal, is
// here.
func (f Finding) Reached() bool {
	switch {
	case f.Goal == nil:
		return true
	case math.IsNaN(f.Value.Median):
		return false
	case f.Goal.Most:
		return f.Value.Median <= f.Goal.Bound
	}
	return f.Value.Median >= f.Goal.Bound
}

// Measure is what was measured of one contender, for people to see what a ratio
// is a ratio of.
type Measure struct {
	Scenario  string      `json:"scenario"`
	Contender string      `json:"contender"`
	Value     stat.Spread `json:"value"`
	Unit      string      `json:"unit"`
}

// Result is what a scenario found.
type Result struct {
	Findings []Finding `json:"findings"`
	Measures []Measure `json:"measures"`
	Notes    []string  `json:"notes,omitempty"`
}

// faster adds how many times as fast as another contender the library was, round
// by round.
func (r *Result) faster(samples map[string]Sample, than string, goal *Goal) {
	ratios := stat.Ratios(samples[than], samples[library])
	r.Findings = append(r.Findings, Finding{
		What: "speed against the " + than, Value: stat.Of(ratios), Unit: "x", Goal: goal,
	})
}

// latency adds how long the library took, as a multiple of what another took.
func (r *Result) latency(samples map[string]Sample, against string, goal *Goal) {
	ratios := stat.Ratios(samples[library], samples[against])
	r.Findings = append(r.Findings, Finding{
		What: "latency against the " + against, Value: stat.Of(ratios), Unit: "x", Goal: goal,
	})
}

// rates adds each contender's rows a second.
func (r *Result) rates(list []Contender, samples map[string]Sample, rows int) {
	for _, contender := range list {
		rates := stat.Each(samples[contender.Name], func(seconds float64) float64 { return float64(rows) / seconds })
		r.Measures = append(r.Measures, Measure{Contender: contender.Name, Value: stat.Of(rates), Unit: "rows/s"})
	}
}

// times adds how many milliseconds each contender took.
func (r *Result) times(list []Contender, samples map[string]Sample) {
	for _, contender := range list {
		times := stat.Each(samples[contender.Name], func(seconds float64) float64 { return seconds * 1000 })
		r.Measures = append(r.Measures, Measure{Contender: contender.Name, Value: stat.Of(times), Unit: "ms"})
	}
}
