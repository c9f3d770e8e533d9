package work

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lease-governance/leasereaper/examples/worker/queue"
)

// run does one job, which was claimed after began by this process's clock. A job
// whose claim came through when ctx had ended is not begun.
func (w *Worker) run(ctx, jobs context.Context, job queue.Job, began time.Time) {
	defer w.free(1)
	if ctx.Err() != nil {
		outcome, err := w.giveBack(jobs, job, context.Cause(ctx))
		w.report(jobs, End{Job: job, Outcome: outcome, Err: err})
		return
	}
	jobs, end := context.WithCancelCause(jobs)
	defer end(nil)
	stop := w.keep(jobs, job, began, end)
	called := time.Now()
	done, err := w.handle(jobs, job)
	stop() // from here on the row's lock holds the job
	outcome, err := w.end(jobs, job, done, err)
	w.report(jobs, End{Job: job, Outcome: outcome, Err: err, Took: time.Since(called)})
}

func (w *Worker) handle(ctx context.Context, job queue.Job) (done Done, err error) {
	err = guarded(func() error {
		done, err = w.cfg.Handlers[job.Kind](ctx, job)
		return err
	})
	return done, err
}

// end ends a job whose handler has returned.
func (w *Worker) end(ctx context.Context, job queue.Job, done Done, err error) (Outcome, error) {
	cause := context.Cause(ctx)
	switch {
	case err != nil && cause != nil:
		return w.giveBack(ctx, job, cause)
	case err == nil:
		err = w.complete(ctx, job, done)
	}
	switch {
	case err == nil:
		return Succeeded, nil
	case errors.Is(err, queue.ErrLost), errors.Is(err, queue.ErrUnknown):
		return outcome(Unknown, err, err)
	}
	return w.fail(ctx, job, err)
}

func (w *Worker) complete(ctx context.Context, job queue.Job, done Done) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := guarded(func() error { return w.queue.Complete(ctx, job, done.Effects) })
	if err == nil && done.Committed != nil {
		w.committed(ctx, job, done)
	}
	return err
}

// committed cannot fail any more.
func (w *Worker) committed(ctx context.Context, job queue.Job, done Done) {
	err := guarded(func() error {
		done.Committed()
		return nil
	})
	if err != nil {
		w.cfg.Logger.LogAttrs(ctx, slog.LevelError, "committed panicked",
			slog.String("job_kind", job.Kind), slog.Any("err", err))
	}
}

func (w *Worker) fail(ctx context.Context, job queue.Job, reason error) (Outcome, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	buried, err := w.queue.Fail(ctx, job, reason.Error())
	if buried {
		return outcome(Buried, err, reason)
	}
	return outcome(Retried, err, reason)
}

func (w *Worker) giveBack(ctx context.Context, job queue.Job, reason error) (Outcome, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return outcome(GivenBack, w.queue.GiveBack(ctx, job), reason)
}

// outcome is what was meant, for a reason, unless an error came between.
func outcome(meant Outcome, err, reason error) (Outcome, error) {
	switch {
	case err == nil:
		return meant, reason
	case errors.Is(err, queue.ErrLost):
		return Lost, err
	}
	return Unknown, err
}

// bounded is for ending a job, also when its context has ended.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
}

// report logs and counts the end of a lease.
func (w *Worker) report(ctx context.Context, end End) {
	attrs := []slog.Attr{
		slog.String("job_id", end.Job.ID),
		slog.String("job_kind", end.Job.Kind),
		slog.Int("attempts", end.Job.Attempts),
		slog.String("outcome", string(end.Outcome)),
		slog.Duration("took", end.Took),
	}
	level := slog.LevelDebug
	switch end.Outcome {
	case Succeeded:
	case GivenBack:
		level = slog.LevelInfo
	default:
		level = slog.LevelWarn
	}
	if end.Err != nil {
		attrs = append(attrs, slog.Any("err", end.Err))
	}
	var panicked *panicError
	if errors.As(end.Err, &panicked) {
		attrs = append(attrs, slog.String("stack", string(panicked.stack)))
	}
	w.cfg.Logger.LogAttrs(ctx, level, "job ended", attrs...)
	w.cfg.OnEnd(end)
}
