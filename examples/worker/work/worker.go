package work

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/lease-governance/leasereaper/examples/worker/queue"
)

// statementTimeout bounds what must not be left half done: a claim, and the end of
// a job.
const statementTimeout = 10 * time.Second

// Worker runs jobs.
type Worker struct {
	queue *queue.Queue
	cfg   Config
	kinds []string
	slots chan struct{} // holds one for each job that runs
	jobs  sync.WaitGroup
}

// New makes a Worker. It reports every fault of cfg and does no I/O.
func New(q *queue.Queue, cfg Config) (*Worker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Worker{
		queue: q,
		cfg:   cfg,
		kinds: slices.Sorted(maps.Keys(cfg.Handlers)),
		slots: make(chan struct{}, cfg.Slots),
	}, nil
}

// Running is how many slots are taken.
func (w *Worker) Running() int { return len(w.slots) }

// Run claims and runs jobs until ctx ends. Then it claims no more, gives the
// running jobs the time of Grace, ends their contexts, gives back the leases of
// those that return, and returns: nil, or [ErrAbandoned] when some did not.
// Nothing but ctx ends it: a database out of reach is logged and tried again.
func (w *Worker) Run(ctx context.Context) error {
	jobs, release := w.outlive(ctx)
	defer release()
	trouble := false
	for ctx.Err() == nil {
		free := w.take(ctx)
		began := time.Now()
		claimed, err := w.claim(ctx, free)
		w.free(free - len(claimed))
		trouble = w.note(ctx, trouble, err)
		for _, job := range claimed {
			w.jobs.Go(func() { w.run(ctx, jobs, job, began) })
		}
		if len(claimed) < free {
			w.rest(ctx)
		}
	}
	return w.drain(jobs)
}

// outlive returns a context that ends a Grace after ctx.
func (w *Worker) outlive(ctx context.Context) (jobs context.Context, release func()) {
	jobs, end := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		grace := time.AfterFunc(w.cfg.Grace, func() { end(ErrStopped) })
		context.AfterFunc(jobs, func() { grace.Stop() })
	})
	return jobs, func() {
		unhook()
		end(nil)
	}
}

// take waits for a free slot and takes all that there are. It takes none when ctx
// has ended.
func (w *Worker) take(ctx context.Context) (taken int) {
	select {
	case w.slots <- struct{}{}:
		taken++
	case <-ctx.Done():
		return 0
	}
	for {
		select {
		case w.slots <- struct{}{}:
			taken++
		default:
			return taken
		}
	}
}

func (w *Worker) free(n int) {
	for range n {
		<-w.slots
	}
}

// claim is not ended by ctx: a claim that is broken off may have leased jobs that
// nobody would know of.
func (w *Worker) claim(ctx context.Context, n int) ([]queue.Job, error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	return w.queue.Claim(ctx, w.kinds, n)
}

// note logs the beginning of trouble with claims, and its end.
func (w *Worker) note(ctx context.Context, before bool, err error) (now bool) {
	switch {
	case err != nil && !before:
		w.cfg.Logger.LogAttrs(ctx, slog.LevelError, "cannot claim jobs", slog.Any("err", err))
	case err == nil && before:
		w.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "claims jobs again")
	}
	return err != nil
}

// rest waits for a Poll, or for the end of ctx.
func (w *Worker) rest(ctx context.Context) {
	wake := time.NewTimer(w.cfg.Poll - rand.N(w.cfg.Poll/10+1))
	defer wake.Stop()
	select {
	case <-wake.C:
	case <-ctx.Done():
	}
}

// drain waits for the running jobs, for Patience after the end of their context.
func (w *Worker) drain(jobs context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.jobs.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-jobs.Done():
	}
	select {
	case <-done:
		return nil
	case <-time.After(w.cfg.Patience):
		return fmt.Errorf("%w: %d", ErrAbandoned, w.Running())
	}
}
