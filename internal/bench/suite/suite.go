// Package suite is what the benchmarks measure: a file a scenario, and the parts
// that they share. Every scenario compares what was measured in the same run,
// turn by turn.
package suite

import (
	"context"
	"fmt"
	"regexp"
	"runtime"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// Env is what a scenario has to work with.
type Env struct {
	Bed *bed.Bed
	Size
}

// Size is how much a run measures.
type Size struct {
	Rows    int // in the queue
	Stale   int // of those
	Batch   int
	Small   int // the small batch
	Rounds  int // at most, where a round costs little
	Warmups int
}

// Full is the size that the goals are about, and Smoke one that takes seconds and
// shows that each scenario works.
var (
	Full  = Size{Rows: 1_000_000, Stale: 100_000, Batch: 1000, Small: 100, Rounds: 300, Warmups: 3}
	Smoke = Size{Rows: 2000, Stale: 1000, Batch: 40, Small: 20, Rounds: 3, Warmups: 1}
)

// rounds is how many rounds a backlog is enough for.
func (s Size) rounds(batch, contenders int) int {
	return min(s.Rounds, s.Stale/(batch*contenders)-s.Warmups)
}

// Scenario is one thing that is measured.
type Scenario struct {
	Name  string
	About string
	Run   func(ctx context.Context, env *Env) (Result, error)
}

// All returns the scenarios in the order in which they are run and shown.
func All() []Scenario {
	return []Scenario{
		applyScattered(), applyDense(), applySmall(), applyOne(), applyIdle(),
	}
}

// Run runs the scenarios whose name matches, and tells each one's name before it
// begins.
func Run(ctx context.Context, env *Env, only *regexp.Regexp, tell func(Scenario)) (Result, error) {
	var all Result
	for _, scenario := range All() {
		if !only.MatchString(scenario.Name) {
			continue
		}
		tell(scenario)
		runtime.GC() // what the last one left is not this one's
		result, err := scenario.Run(ctx, env)
		if err != nil {
			return all, fmt.Errorf("%s: %w", scenario.Name, err)
		}
		all.add(scenario.Name, result)
	}
	return all, nil
}

// add adds a scenario's result under its name.
func (r *Result) add(name string, of Result) {
	for _, finding := range of.Findings {
		finding.Scenario = name
		r.Findings = append(r.Findings, finding)
	}
	for _, measure := range of.Measures {
		measure.Scenario = name
		r.Measures = append(r.Measures, measure)
	}
	for _, note := range of.Notes {
		r.Notes = append(r.Notes, name+": "+note)
	}
}
