package suite

import (
	"context"
	"fmt"
	"slices"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
)

// exhaustion is how many of a queue's jobs are exhausted.
type exhaustion struct {
	percent int
	text    string
}

// The queues that are compared.
var (
	none  = exhaustion{0, "none exhausted"}
	some  = exhaustion{tenth, "10% exhausted"}
	every = exhaustion{100, "all exhausted"}
)

// name names the contender that reaps a queue of so many jobs.
func (e exhaustion) name(jobs int) string { return fmt.Sprintf("%d jobs, %s", jobs, e.text) }

// applyExhausted reaps a queue of jobs that kill their workers: every one becomes a
// dead letter. The cost of a job is to be the same however many there are.
func applyExhausted() Scenario {
	return Scenario{
		Name:  "apply-exhausted",
		About: "one apply of everything, all jobs exhausted",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			small, err := env.exhausted(ctx, env.Batch, &r)
			if err != nil {
				return r, err
			}
			large, err := env.exhausted(ctx, env.Many, &r)
			if err != nil {
				return r, err
			}
			what := fmt.Sprintf("that ratio, all exhausted: %d jobs against %d", env.Many, env.Batch)
			r.find(what, stat.Of(stat.Ratios(large, small)), "x", atMost(1.3))
			return r, nil
		},
	}
}

// exhausted has one apply take all of a queue, and returns how many times what a job
// costs when none is exhausted it costs when all are, round by round.
func (env *Env) exhausted(ctx context.Context, jobs int, r *Result) ([]float64, error) {
	samples, order := Samples{}, []exhaustion{none, some, every}
	for range env.Fresh {
		more, err := env.raceExhausted(ctx, jobs, order)
		if err != nil {
			return nil, err
		}
		samples.add(more)
		order = append(order[1:], order[0])
	}
	against := func(e exhaustion) []float64 { return stat.Ratios(samples[e.name(jobs)], samples[none.name(jobs)]) }
	ratios := against(every)
	r.find("cost of a job against none exhausted: "+every.name(jobs), stat.Of(ratios), "x", atMost(2.5))
	r.find("cost of a job against none exhausted: "+some.name(jobs), stat.Of(against(some)), "x", nil)
	micros := func(seconds float64) float64 { return seconds * 1e6 / float64(jobs) }
	for _, e := range []exhaustion{none, some, every} {
		r.measure(e.name(jobs), stat.Of(stat.Each(samples[e.name(jobs)], micros)), "us a job")
	}
	return ratios, nil
}

// raceExhausted reaps a fresh queue of each kind once. What the warm-up takes is in
// the queue as well.
func (env *Env) raceExhausted(ctx context.Context, jobs int, order []exhaustion) (samples Samples, err error) {
	rows := jobs + env.Warmups*min(jobs, warmUp)
	var fixtures []bed.Fixture
	for _, e := range order {
		fixtures = append(fixtures, bed.Shape{Rows: rows, Stale: rows, Exhausted: e.percent}.Fixture())
	}
	err = env.onEach(ctx, fixtures, func(queues []*bed.Queue) error {
		var list []Contender
		for i, q := range queues {
			one, err := connect(ctx, q, Library)
			if err != nil {
				return err
			}
			one[0].Name = order[i].name(jobs)
			list = slices.Concat(list, one)
		}
		samples, err = Race{Warmups: env.Warmups, Rounds: 1, Limit: jobs}.run(ctx, list)
		return err
	})
	return samples, err
}
