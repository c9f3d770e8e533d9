package fleet

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/reaper"
)

const (
	defaultInterval    = 30 * time.Second // RunConfig's own
	defaultMinInterval = time.Second      // RunConfig's own

	// longestRetry is the longest wait before a member is tried again.
	longestRetry = 10 * time.Minute

	// lateAfter is how long a Run waits for its members before it logs who has not ended.
	lateAfter = 10 * time.Second
)

// Run runs the loop of each member, as [reaper.Reaper.Run] does with the same actor and
// configuration, until ctx ends. Then it waits for all loops and returns the cause of ctx. A
// DB, a hook or a Members that ignores its context holds Run that long; after ten seconds the
// log names the members that have not ended. No goroutine outlives it.
//
// Every Interval it asks [Config.Members] for the list. It starts members that are new, and
// stops those that are not listed any more. A member with a new DB or Config is stopped,
// released and started again: a name never has two loops at once. Starts are spread evenly
// over an Interval: the first of those that are new at the same time starts at once.
//
// A loop that panics is logged and started again, after waits that double from MinInterval up
// to ten minutes. So is the loop of a member whose Config is invalid, which is logged once.
// Everything else that a member meets is handled and logged by its own loop.
//
// OnPass is called concurrently, with the member's name in [reaper.Pass].
//
// Run returns at once, with every problem of its arguments: those of [reaper.Reaper.Run].
func (f *Fleet) Run(ctx context.Context, actor string, cfg reaper.RunConfig) error {
	if err := checkArguments(actor, cfg); err != nil {
		return err
	}
	cfg.Interval = cmp.Or(cfg.Interval, defaultInterval)
	cfg.MinInterval = cmp.Or(cfg.MinInterval, min(defaultMinInterval, cfg.Interval))
	r := &run{fleet: f, actor: actor, cfg: cfg, loops: map[string]*memberLoop{}}
	retries := growing{first: cfg.MinInterval, longest: cfg.Interval}
	for ctx.Err() == nil {
		wait := cfg.Interval
		if r.refresh(ctx) {
			retries.reset()
		} else {
			wait = retries.next()
		}
		sleep(ctx, wait)
	}
	r.wait(ctx)
	return context.Cause(ctx)
}

// errChecked is the cause of the end of a Run that only checks its arguments.
var errChecked = errors.New("fleet: the arguments are valid")

// checkArguments has a reaper check the arguments of a Run that has ended already.
func checkArguments(actor string, cfg reaper.RunConfig) error {
	r, err := reaper.New(noDB{}, reaper.Config{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errChecked)
	if err := r.Run(ctx, actor, cfg); !errors.Is(err, errChecked) {
		return err
	}
	return nil
}

// noDB is the DB of a reaper that is not used.
type noDB struct{}

// Begin is not called.
func (noDB) Begin(context.Context) (pgx.Tx, error) { return nil, errChecked }

// run is one Run. Each name has a goroutine as long as it is listed.
type run struct {
	fleet  *Fleet
	actor  string
	cfg    reaper.RunConfig
	group  sync.WaitGroup // the goroutines of the loops
	failed bool           // the last list was an error

	mu    sync.Mutex
	loops map[string]*memberLoop // by name; it and what it has are guarded by mu
}

// refresh asks for the members, and starts and stops loops.
func (r *run) refresh(ctx context.Context) (ok bool) {
	members, err := r.fleet.list(ctx)
	if ctx.Err() != nil {
		return false
	}
	r.logList(ctx, err)
	if err != nil {
		return false
	}
	r.logLate(ctx)
	c := r.update(ctx, members)
	if c.added+c.replaced+c.gone > 0 {
		r.fleet.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "members changed", slog.Int("members", len(members)),
			slog.Int("added", c.added), slog.Int("replaced", c.replaced), slog.Int("gone", c.gone))
	}
	for _, m := range c.unused {
		r.fleet.release(ctx, m)
	}
	return true
}

// changes are what an update did.
type changes struct {
	added, replaced, gone int
	unused                []Member // were to be started, and will not be
}

// update makes the loops those of the list.
func (r *run) update(ctx context.Context, members []Member) (c changes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	listed := make(map[string]bool, len(members))
	var fresh []Member
	for _, m := range members {
		listed[m.Name] = true
		if l := r.loops[m.Name]; l == nil || !l.has(m) {
			fresh = append(fresh, m)
		}
	}
	for name, l := range r.loops {
		if !listed[name] && l.wanted() {
			c.gone++
			c.unused = append(c.unused, l.replace(nil)...)
		}
	}
	for i, m := range fresh {
		s := &start{member: m, delay: r.cfg.Interval / time.Duration(len(fresh)) * time.Duration(i)}
		if l := r.loops[m.Name]; l != nil {
			c.replaced++
			c.unused = append(c.unused, l.replace(s)...)
			continue
		}
		c.added++
		l := &memberLoop{run: r, name: m.Name, next: s}
		r.loops[m.Name] = l
		r.group.Go(func() { l.keep(ctx) })
	}
	return c
}

// logList logs when lists begin to fail and when they work again.
func (r *run) logList(ctx context.Context, err error) {
	switch {
	case err != nil && !r.failed:
		r.fleet.cfg.Logger.LogAttrs(ctx, slog.LevelError, "members not listed", slog.Any("err", err))
	case err == nil && r.failed:
		r.fleet.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "members listed again")
	}
	r.failed = err != nil
}

// logLate logs each member, once, that was told to end and has not.
func (r *run) logLate(ctx context.Context) {
	r.mu.Lock()
	var late []Member
	for _, l := range r.loops {
		if l.stopping && !l.late {
			l.late = true
			late = append(late, l.member)
		}
	}
	r.mu.Unlock()
	for _, m := range late {
		r.fleet.logger(m).LogAttrs(ctx, slog.LevelWarn, "member has not ended")
	}
}

// wait waits for all loops to end.
func (r *run) wait(ctx context.Context) {
	r.mu.Lock()
	for _, l := range r.loops {
		l.stopping = true
	}
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.group.Wait()
	}()
	late := time.NewTimer(lateAfter)
	defer late.Stop()
	select {
	case <-late.C:
		r.logLate(ctx)
		<-ended
	case <-ended:
	}
}

// growing is a wait that doubles.
type growing struct{ first, longest, wait time.Duration }

func (g *growing) reset() { g.wait = 0 }

// next returns the wait. A tenth of it is random, so that members that failed together are
// not tried together.
func (g *growing) next() time.Duration {
	g.wait = min(max(2*g.wait, g.first), g.longest)
	return g.wait - rand.N(g.wait/10+1)
}

// sleep returns after a time, or when ctx ends.
func sleep(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
