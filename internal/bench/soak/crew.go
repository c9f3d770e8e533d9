package soak

import (
	"context"
	"sync"
	"time"
)

// crew is a number of goroutines. The first error of one ends all.
type crew struct {
	ctx   context.Context //nolint:containedctx // it lasts as long as the crew does
	stop  context.CancelCauseFunc
	group sync.WaitGroup
}

func newCrew(ctx context.Context) *crew {
	c := &crew{}
	c.ctx, c.stop = context.WithCancelCause(ctx)
	return c
}

func (c *crew) start(do func(ctx context.Context) error) {
	c.group.Go(func() {
		if err := do(c.ctx); err != nil {
			c.stop(err)
		}
	})
}

// wait waits for all, and returns the error that ended them.
func (c *crew) wait() error {
	c.group.Wait()
	return context.Cause(c.ctx)
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
