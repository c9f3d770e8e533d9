package suite

import (
	"context"
	"errors"
	"time"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/internal/bench/wire"
)

// oneWay is how long a word travels on the long link, in each direction.
const oneWay = 5 * time.Millisecond

// applyLink reaps over a link to another town: what counts there is how often one
// has to wait for the other. An exchange is two delays, there and back.
func applyLink() Scenario {
	return Scenario{
		Name:  "apply-link",
		About: "apply, limit 1000, over a link with a delay of 5 ms each way",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			err = env.on(ctx, env.scattered(), func(q *bed.Queue) error { return env.link(ctx, q, &r) })
			return r, err
		},
	}
}

func (env *Env) link(ctx context.Context, q *bed.Queue, r *Result) (err error) {
	counter := &wire.Counter{}
	near, err := q.Connect(ctx, counter.Attach)
	if err != nil {
		return err
	}
	link, err := wire.NewLink(ctx, near.Config(), oneWay)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	far, err := q.Connect(ctx, link.Attach)
	if err != nil {
		return err
	}
	defer far.Close() // before the link, whose ends it waits for
	here, err := Library(near)
	if err != nil {
		return err
	}
	there, err := Library(far)
	if err != nil {
		return err
	}
	there.Name = "library, over the link"
	exchanges, err := countExchanges(ctx, counter, here, env.Batch)
	if err != nil {
		return err
	}
	race := Race{Warmups: env.Warmups, Rounds: env.rounds(env.Batch, 2) - 2, Limit: env.Batch}
	samples, err := race.run(ctx, []Contender{here, there})
	r.find("delays waited for", stat.Exactly(float64(2*exchanges)), "", atMost(4))
	r.times([]string{here.Name, there.Name}, samples)
	return err
}
