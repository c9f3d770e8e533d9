// Package suite is what the benchmarks measure: a file a scenario, and the parts
// that they share. Every scenario compares what was measured in the same run,
// turn by turn.
package suite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// Scenario is one thing that is measured.
type Scenario struct {
	Name  string
	About string
	Run   func(ctx context.Context, env *Env) (Result, error)
}

// All returns the scenarios in the order in which they are run and shown.
func All() []Scenario {
	return []Scenario{
		applyScattered(), applyDense(), applyFew(),
		applyOne(), applyIdle(), applyRefused(), applyLink(), allocations(),
		drain(), crowd(), deadIndex(), dryRun(),
		anatomy(), anatomyIdle(), batchSizes(), backlogs(),
		peerRiver(), peerPgBoss(), peerGraphile(),
	}
}

// Env is what a scenario has to work with.
type Env struct {
	Bed *bed.Bed
	Size
}

// Run runs the scenarios whose name matches, and tells of each before it begins.
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

// on lays a queue of the reference schema for as long as do lasts.
func (env *Env) on(ctx context.Context, shape bed.Shape, do func(*bed.Queue) error) error {
	return env.onFilling(ctx, shape.Filling(), do)
}

// onFilling lays any queue for as long as do lasts.
func (env *Env) onFilling(ctx context.Context, filling bed.Filling, do func(*bed.Queue) error) (err error) {
	q, err := env.Bed.Lay(ctx, filling)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close(ctx)) }()
	return do(q)
}

// scattered is the shape of the queue where nothing else is said.
func (env *Env) scattered() bed.Shape { return bed.Shape{Rows: env.Rows, Stale: env.Stale} }
