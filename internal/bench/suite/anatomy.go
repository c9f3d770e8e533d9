package suite

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
)

// elsewhere is what the server does not log: the client, the wire, and the
// protocol.
const elsewhere = "client and wire"

// anatomy shows where the time of a batch goes.
func anatomy() Scenario {
	return Scenario{
		Name:  "anatomy",
		About: "where the time of an apply with limit 1000 goes",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			err = env.on(ctx, env.scattered(), func(q *bed.Queue) error {
				return env.dissect(ctx, q, env.batches(), &r)
			})
			return r, err
		},
	}
}

// anatomyIdle shows where the time goes when there is nothing to do.
func anatomyIdle() Scenario {
	return Scenario{
		Name:  "anatomy-idle",
		About: "where the time of an apply goes that finds nothing",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			err = env.on(ctx, env.shape(0), func(q *bed.Queue) error {
				return env.dissect(ctx, q, env.Warmups+env.Rounds, &r)
			})
			return r, err
		},
	}
}

// logging has the server log how long each statement of a pool takes.
func logging(config *pgxpool.Config) {
	config.ConnConfig.RuntimeParams["log_min_duration_statement"] = "0"
	config.ConnConfig.RuntimeParams["log_parameter_max_length"] = "0"
}

// dissect measures each step of the library's batches. The first are a warm-up.
func (env *Env) dissect(ctx context.Context, q *bed.Queue, rounds int, r *Result) error {
	pool, err := q.Connect(ctx, logging)
	if err != nil {
		return err
	}
	contender, err := Library(pool)
	if err != nil {
		return err
	}
	log, err := openLog(env.Server.Log())
	if err != nil {
		return err
	}
	defer log.close()
	var parts parts
	for round := range rounds {
		began := time.Now()
		if _, err := contender.Reap(ctx, env.Batch); err != nil {
			return err
		}
		took := time.Since(began)
		steps, err := log.steps()
		if err != nil {
			return err
		}
		if round >= env.Warmups {
			parts.add(steps, took)
		}
	}
	for _, name := range parts.names {
		r.measure(name, stat.Of(parts.millis[name]), "ms")
	}
	return nil
}

// parts are the milliseconds of each step, round by round.
type parts struct {
	names  []string // in the order in which they were met
	millis map[string][]float64
}

// add adds a round, and what of it the server did not account for.
func (p *parts) add(steps []step, took time.Duration) {
	sums, rest := map[string]float64{}, float64(took.Microseconds())/1000
	for _, s := range steps {
		sums[s.name] += s.millis
		rest -= s.millis
		p.meet(s.name)
	}
	p.meet(elsewhere)
	sums[elsewhere] = rest
	for name, sum := range sums {
		p.millis[name] = append(p.millis[name], sum)
	}
}

func (p *parts) meet(name string) {
	if p.millis == nil {
		p.millis = map[string][]float64{}
	}
	if _, met := p.millis[name]; !met {
		p.names = append(p.names, name)
		p.millis[name] = nil
	}
}
