package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// tick is how often the demo looks around.
	tick = 100 * time.Millisecond

	// overtime is how long after its time the demo waits for the last jobs.
	overtime = 30 * time.Second
)

// ErrFailed is Run's error when an account does not come out right.
var ErrFailed = errors.New("demo: not everything is as it should be, see above")

// Config says how the demo goes.
type Config struct {
	For       time.Duration // about how long, once the workers are there
	ReapAsJob bool          // the reaper is a job, and its loop the watchdog
}

const introduction = `Three workers on a database of their own. Each does jobs and runs the reaper, and
one is killed now and then. Leases last %v. This takes about %v.
The third worker is not killed and serves the console. What you do there may show
in the accounts at the end.

`

// Run shows the demo on out. It returns [ErrFailed] when an account does not come
// out right, and another error when it could not go on.
func Run(ctx context.Context, out io.Writer, cfg Config) (err error) {
	fmt.Fprintf(out, introduction, lease, cfg.For)
	db, err := openDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	d := &demo{cfg: cfg, db: db, story: newStory(out), crew: newCrew(db.url, cfg.ReapAsJob)}
	defer d.crew.killAll()
	if err := d.play(ctx); err != nil {
		return err
	}
	return d.account(ctx)
}

// demo is one performance.
type demo struct {
	cfg   Config
	db    *database
	story *story
	crew  *crew

	fed   int // jobs added
	kills []kill
}

// play goes on until the time is over and all jobs have ended.
func (d *demo) play(ctx context.Context) error {
	for _, seat := range d.crew.seats {
		if err := d.start(seat); err != nil {
			return err
		}
	}
	d.story.begin() // however long that took
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for {
		select {
		case <-clock.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, act := range []func(context.Context) error{d.feed, d.kill, d.revive, d.tell} {
			if err := act(ctx); err != nil {
				return err
			}
		}
		if over, err := d.over(ctx); over || err != nil {
			return err
		}
	}
}

func (d *demo) start(seat *seat) error {
	worker, err := d.crew.start(seat)
	if err != nil {
		return err
	}
	d.story.say("%s starts, metrics at http://%s/metrics", worker.name, worker.addr)
	if seat.hasConsole() {
		d.story.say("open the console: http://%s/console/", worker.addr)
	}
	return nil
}

// kill kills the worker whose turn it is, if it has jobs to lose, for as long as
// jobs are added.
func (d *demo) kill(ctx context.Context) error {
	if d.story.elapsed() < d.killAt() || d.fed == d.supply() && len(d.kills) > 0 {
		return nil
	}
	seat := d.crew.seats[len(d.kills)%(len(d.crew.seats)-1)] // the last one has the console
	if seat.worker == nil {
		return nil
	}
	held, err := d.db.held(ctx, seat.worker.name)
	if err != nil || len(held) == 0 {
		return err
	}
	killed, err := d.execute(ctx, seat)
	if err != nil {
		return err
	}
	d.kills = append(d.kills, killed)
	d.story.say("%s is KILLED, with %s", killed.name, list(killed.jobs))
	return nil
}

// killAt is when the next worker is killed.
func (d *demo) killAt() time.Duration {
	return d.cfg.For*15/100 + d.cfg.For/6*time.Duration(len(d.kills))
}

// kill is one that happened.
type kill struct {
	name   string
	counts counts    // by its metrics, just before
	jobs   []heldJob // that it was at
}

// execute kills a worker for good: its server processes are gone too, so that
// nothing it has sent can still happen.
func (d *demo) execute(ctx context.Context, seat *seat) (kill, error) {
	worker := seat.worker
	counted, err := scrape(ctx, worker.addr)
	if err != nil {
		return kill{}, err
	}
	seat.kill()
	if err := d.db.gone(ctx, worker.name); err != nil {
		return kill{}, err
	}
	held, err := d.db.held(ctx, worker.name)
	return kill{name: worker.name, counts: counted.counts(), jobs: held}, err
}

// revive starts a new worker in the place of a killed one, a little later.
func (d *demo) revive(context.Context) error {
	for _, seat := range d.crew.seats {
		if seat.worker == nil && time.Since(seat.since) > time.Second {
			if err := d.start(seat); err != nil {
				return err
			}
		}
	}
	return nil
}

// over reports whether everything has come to its end.
func (d *demo) over(ctx context.Context) (bool, error) {
	waiting, err := d.db.unfinished(ctx)
	switch {
	case err != nil:
		return false, err
	case d.story.elapsed() > d.cfg.For+overtime:
		return false, fmt.Errorf("demo: %d jobs have not ended in time\n%s", waiting, d.crew.lastWords())
	}
	return waiting == 0 && d.fed == d.supply() && d.crew.complete(), nil
}
