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
		applyScattered(), applyDense(), applyFew(), applyMany(), applyExhausted(),
		applyOne(), applyIdle(), applyRefused(), applyLink(), allocations(),
		drain(), crowd(), deadIndex(), dryRun(),
		anatomy(), anatomyIdle(), batchSizes(), backlogs(),
		peerRiver(), peerPgBoss(), peerGraphile(),
	}
}

// Env is what a scenario has to work with.
type Env struct {
	Server *bed.Server
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

// on clones a queue of the reference schema for as long as do lasts.
func (env *Env) on(ctx context.Context, shape bed.Shape, do func(*bed.Queue) error) error {
	return env.onFixture(ctx, shape.Fixture(), do)
}

// onFixture clones any queue for as long as do lasts.
func (env *Env) onFixture(ctx context.Context, fixture bed.Fixture, do func(*bed.Queue) error) error {
	return env.onEach(ctx, []bed.Fixture{fixture}, func(queues []*bed.Queue) error { return do(queues[0]) })
}

// onEach clones queues for as long as do lasts.
func (env *Env) onEach(ctx context.Context, fixtures []bed.Fixture, do func([]*bed.Queue) error) (err error) {
	var queues []*bed.Queue
	defer func() {
		for _, q := range queues {
			err = errors.Join(err, q.Close(ctx))
		}
	}()
	for _, fixture := range fixtures {
		q, err := env.Server.Clone(ctx, fixture)
		if err != nil {
			return err
		}
		queues = append(queues, q)
	}
	return do(queues)
}

// tenth is how many percent of the stale jobs are exhausted where nothing else is
// said.
const tenth = 10

// shape is a queue whose stale rows are spread over the table.
func (env *Env) shape(stale int) bed.Shape {
	return bed.Shape{Rows: env.Rows, Stale: stale, Exhausted: tenth}
}

// scattered is the shape of the queue where nothing else is said.
func (env *Env) scattered() bed.Shape { return env.shape(env.Stale) }
