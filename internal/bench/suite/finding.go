package suite

import (
	"strings"

	"github.com/lease-governance/leasereaper/internal/bench/stat"
)

// Finding is a figure, and what it should be.
type Finding struct {
	Scenario string      `json:"scenario"`
	What     string      `json:"what"`
	Value    stat.Spread `json:"value"`
	Unit     string      `json:"unit"`
	Goal     *Goal       `json:"goal,omitempty"`    // nil: there is none
	NotRun   string      `json:"not_run,omitempty"` // why there is no value
}

// Goal is what a figure's median should be.
type Goal struct {
	Most  bool    `json:"most"` // at most Bound, instead of at least
	Bound float64 `json:"bound"`
}

func atLeast(bound float64) *Goal { return &Goal{Bound: bound} }
func atMost(bound float64) *Goal  { return &Goal{Most: true, Bound: bound} }

// Reached reports whether the figure is as good as its goal. A figure without a
// goal is.
func (f Finding) Reached() bool {
	switch {
	case f.Goal == nil:
		return true
	case f.NotRun != "":
		return false
	case f.Goal.Most:
		return f.Value.Median <= f.Goal.Bound
	}
	return f.Value.Median >= f.Goal.Bound
}

// Measure is what was measured of one contender, so that people see what a ratio
// is a ratio of.
type Measure struct {
	Scenario  string      `json:"scenario"`
	Contender string      `json:"contender"`
	Value     stat.Spread `json:"value"`
	Unit      string      `json:"unit"`
}

// Result is what scenarios found.
type Result struct {
	Findings []Finding `json:"findings"`
	Measures []Measure `json:"measures"`
	Series   []Series  `json:"series,omitempty"`
}

// Series is a line of a plot.
type Series struct {
	Scenario  string  `json:"scenario"`
	Contender string  `json:"contender"`
	Points    []Point `json:"points"`
}

// Point is what was measured at a size.
type Point struct {
	Size  int         `json:"size"`
	Value stat.Spread `json:"value"`
}

// find adds a finding.
func (r *Result) find(what string, value stat.Spread, unit string, goal *Goal) {
	r.Findings = append(r.Findings, Finding{What: what, Value: value, Unit: unit, Goal: goal})
}

// notRun adds a finding that could not be made.
func (r *Result) notRun(what, why string, goal *Goal) {
	r.Findings = append(r.Findings, Finding{What: what, NotRun: why, Goal: goal})
}

// measure adds a measure.
func (r *Result) measure(contender string, value stat.Spread, unit string) {
	r.Measures = append(r.Measures, Measure{Contender: contender, Value: value, Unit: unit})
}

// plot adds a point to a contender's line.
func (r *Result) plot(contender string, size int, value stat.Spread) {
	for i := range r.Series {
		if r.Series[i].Contender == contender {
			r.Series[i].Points = append(r.Series[i].Points, Point{size, value})
			return
		}
	}
	r.Series = append(r.Series, Series{Contender: contender, Points: []Point{{size, value}}})
}

// faster finds how many times as fast as another contender the library was, round
// by round.
func (r *Result) faster(samples Samples, than string, goal *Goal) {
	ratios := stat.Ratios(samples[than], samples[library])
	r.find("speed against "+article(than), stat.Of(ratios), "x", goal)
}

// slower finds how long the library took, as a multiple of what another did.
func (r *Result) slower(samples Samples, than string, goal *Goal) {
	ratios := stat.Ratios(samples[library], samples[than])
	r.find("latency against "+article(than), stat.Of(ratios), "x", goal)
}

// rates measures each contender's rows a second.
func (r *Result) rates(names []string, samples Samples, rows int) {
	for _, name := range names {
		rates := stat.Each(samples[name], func(seconds float64) float64 { return float64(rows) / seconds })
		r.measure(name, stat.Of(rates), "rows/s")
	}
}

// times measures how many milliseconds each contender took.
func (r *Result) times(names []string, samples Samples) {
	for _, name := range names {
		times := stat.Each(samples[name], func(seconds float64) float64 { return seconds * 1000 })
		r.measure(name, stat.Of(times), "ms")
	}
}

// add adds what a scenario found, under its name.
func (r *Result) add(scenario string, found Result) {
	for _, finding := range found.Findings {
		finding.Scenario = scenario
		r.Findings = append(r.Findings, finding)
	}
	for _, measure := range found.Measures {
		measure.Scenario = scenario
		r.Measures = append(r.Measures, measure)
	}
	for _, series := range found.Series {
		series.Scenario = scenario
		r.Series = append(r.Series, series)
	}
}

// article puts the before a name that is no one's own.
func article(name string) string {
	if strings.ToLower(name) == name {
		return "the " + name
	}
	return name
}
