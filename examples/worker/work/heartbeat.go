package work

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lease-governance/leasereaper/examples/worker/queue"
)

// beats is how many renewals a lease has time for. With three, two may fail.
const beats = 3

// heartbeat renews one lease.
type heartbeat struct {
	renew  func(ctx context.Context) error
	lease  time.Duration
	held   time.Time // the lease began no earlier, by this process's clock
	end    context.CancelCauseFunc
	logger *slog.Logger
}

// keep renews the lease of a job until stop is called, and ends the job's context
// when the lease is lost. stop returns when no renewal is under way.
func (w *Worker) keep(
	ctx context.Context, job queue.Job, claimed time.Time, end context.CancelCauseFunc,
) (stop func()) {
	h := &heartbeat{
		renew:  func(ctx context.Context) error { return w.queue.Renew(ctx, job) },
		lease:  w.queue.Lease(),
		held:   claimed,
		end:    end,
		logger: w.cfg.Logger.With(slog.String("job_id", job.ID), slog.String("job_kind", job.Kind)),
	}
	stopping, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		h.run(context.WithoutCancel(ctx), stopping)
	}()
	return func() {
		close(stopping)
		<-stopped
	}
}

// run beats until it is stopped or the lease is lost.
func (h *heartbeat) run(ctx context.Context, stop <-chan struct{}) {
	tick := time.NewTicker(h.lease / beats)
	defer tick.Stop()
	expiry := time.NewTimer(time.Until(h.ends()))
	defer expiry.Stop()
	for {
		select {
		case <-stop:
			return
		case <-expiry.C:
			h.end(ErrNotRenewed)
			return
		case <-tick.C:
		}
		if lost := h.beat(ctx); lost {
			h.end(queue.ErrLost)
			return
		}
		expiry.Reset(time.Until(h.ends()))
	}
}

// ends is until when the job is surely nobody else's. The database counts from
// when it renews, which is after the renewal was sent.
func (h *heartbeat) ends() time.Time { return h.held.Add(h.lease) }

// beat renews once, and takes no longer than until the next beat or the end. An
// error leaves the lease as it was: it may be held still.
func (h *heartbeat) beat(ctx context.Context) (lost bool) {
	sent := time.Now()
	wait := min(h.lease/beats, h.ends().Sub(sent))
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := h.renew(ctx)
	switch {
	case err == nil:
		h.held = sent
	case errors.Is(err, queue.ErrLost):
		return true
	default:
		h.logger.LogAttrs(ctx, slog.LevelWarn, "lease was not renewed", slog.Any("err", err))
	}
	return false
}
