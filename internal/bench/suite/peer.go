package suite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/reaper"
)

// peer is a queue of the npm registry's that reaps its whole backlog at once.
type peer struct {
	name       string // the package's
	fill       string // SQL with the rows and the stale ones as parameters
	left       string // SQL that counts the stale ones that are left
	warm       string // SQL that reads the table
	operations []operation
}

// operation is something that a peer does, and that is timed.
type operation struct {
	what string
	goal *Goal
}

var (
	//go:embed pgboss.sql
	sqlFillPgBoss string

	//go:embed graphile.sql
	sqlFillGraphile string

	pgBoss = peer{
		name:       "pg-boss",
		fill:       sqlFillPgBoss,
		left:       `select count(*) from pgboss.job where state = 'active' and started_on < now()`,
		warm:       `select count(data) from pgboss.job`,
		operations: []operation{{"pg-boss's expire", nil}, {"pg-boss's supervise", atLeast(2.5)}},
	}
	graphileWorker = peer{
		name:       "graphile-worker",
		fill:       sqlFillGraphile,
		left:       `select count(*) from graphile_worker._private_jobs where locked_at < now() - interval '4 hours'`,
		warm:       `select count(payload::text) from graphile_worker._private_jobs`,
		operations: []operation{{"graphile-worker's unlock", nil}},
	}
)

// peerPgBoss has pg-boss retry or fail what has run for too long, which it calls to
// expire. It is the first of the things that its supervision does; then it looks
// for old jobs to archive and to drop, of which there are none.
func peerPgBoss() Scenario {
	return Scenario{
		Name:  "peer-pg-boss",
		About: "pg-boss's supervise on its own tables, and a drain by the library",
		Run:   func(ctx context.Context, env *Env) (Result, error) { return env.peer(ctx, pgBoss) },
	}
}

// peerGraphile has graphile-worker unlock jobs whose lock is four hours old. That
// is all it does: it counts no attempt, and gives no job up.
func peerGraphile() Scenario {
	return Scenario{
		Name:  "peer-graphile-worker",
		About: "graphile-worker's unlock on its own tables, and a drain by the library",
		Run:   func(ctx context.Context, env *Env) (Result, error) { return env.peer(ctx, graphileWorker) },
	}
}

// peer has a peer and the library reap one backlog after the other. Where there is
// no Node.js the peer is not run, which is no error.
func (env *Env) peer(ctx context.Context, p peer) (r Result, err error) {
	script, err := newNode(ctx)
	if errors.Is(err, errNoNode) {
		for _, operation := range p.operations {
			r.notRun("speed against "+operation.what, err.Error(), operation.goal)
		}
		return r, nil
	}
	if err != nil {
		return r, err
	}
	var own []float64
	theirs := make([][]float64, len(p.operations))
	for range env.Repeats {
		rate, err := env.drainRate(ctx)
		if err != nil {
			return r, err
		}
		rates, err := env.peerRates(ctx, script, p)
		if err != nil {
			return r, err
		}
		own = append(own, rate)
		for i := range theirs {
			theirs[i] = append(theirs[i], rates[i])
		}
	}
	r.measure(library, stat.Of(own), "rows/s")
	for i, operation := range p.operations {
		r.find("speed against "+operation.what, stat.Of(stat.Ratios(own, theirs[i])), "x", operation.goal)
		r.measure(operation.what, stat.Of(theirs[i]), "rows/s")
	}
	return r, nil
}

// peerRates is how many rows a second the peer reaps of its backlog, for each of the
// things that it does.
func (env *Env) peerRates(ctx context.Context, script node, p peer) (rates []float64, err error) {
	err = env.onFixture(ctx, env.fixture(script, p), func(q *bed.Queue) error {
		seconds, err := script.seconds(ctx, p.name, "reap", q.ConnString())
		if err != nil {
			return err
		}
		if len(seconds) != len(p.operations) {
			return fmt.Errorf("%s told of %d things, not %d", p.name, len(seconds), len(p.operations))
		}
		rates = stat.Each(seconds, func(took float64) float64 { return float64(env.Stale) / took })
		return p.check(ctx, q)
	})
	return rates, err
}

// check fails a peer that left something.
func (p peer) check(ctx context.Context, q *bed.Queue) error {
	pool, err := q.Connect(ctx)
	if err != nil {
		return err
	}
	var left int
	if err := pool.QueryRow(ctx, p.left).Scan(&left); err != nil {
		return err
	}
	if left != 0 {
		return fmt.Errorf("%s left %d jobs", p.name, left)
	}
	return nil
}

// fixture is the peer's schema, made by the peer, with rows as many and as wide as
// those of the reference schema.
func (env *Env) fixture(script node, p peer) bed.Fixture {
	return bed.Fixture{
		Name: p.name,
		Fill: func(ctx context.Context, conn *pgx.Conn) error {
			if _, err := script.run(ctx, p.name, "prepare", conn.Config().ConnString()); err != nil {
				return err
			}
			_, err := conn.Exec(ctx, p.fill, env.Rows, env.Stale)
			return err
		},
		WarmUp: []string{p.warm},
	}
}

// drainRate is how many rows a second the library drains of a backlog.
func (env *Env) drainRate(ctx context.Context) (rate float64, err error) {
	err = env.on(ctx, env.scattered(), func(q *bed.Queue) error {
		lib, err := warmReaper(ctx, q)
		if err != nil {
			return err
		}
		began := time.Now()
		done, err := drainAll(ctx, []*reaper.Reaper{lib}, env.Batch)
		rate = float64(done) / time.Since(began).Seconds()
		return err
	})
	return rate, err
}
