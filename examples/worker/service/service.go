package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/examples/worker/metrics"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/reapjob"
	"github.com/lease-governance/leasereaper/examples/worker/work"
	"github.com/lease-governance/leasereaper/reaper"
)

// Service is a worker with a reaper.
type Service struct {
	pool    *pgxpool.Pool
	cfg     Config
	metrics *metrics.Metrics
	worker  *work.Worker
	loop    *reaper.Reaper
	ready   readiness
	reapJob *reapjob.Job // nil unless ReapAsJob
	passes  console.Passes
	console http.Handler // nil: there is none
}

// New makes a Service. It reports the first fault of cfg and does no I/O.
func New(pool *pgxpool.Pool, cfg Config) (*Service, error) {
	cfg = cfg.withDefaults()
	cfg.Handlers = maps.Clone(cfg.Handlers)
	s := &Service{pool: pool, cfg: cfg}
	for _, part := range []func() error{s.makeReapJob, s.makeMetrics, s.makeLoop, s.makeWorker, s.makeConsole} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// renewals is how often a worker renews a lease in its length.
const renewals = 3

// makeReapJob adds the reaper to the kinds of jobs.
func (s *Service) makeReapJob() (err error) {
	if !s.cfg.ReapAsJob {
		return nil
	}
	s.reapJob, err = reapjob.New(s.pool, reapjob.Config{
		Actor:  s.cfg.Name,
		Batch:  s.cfg.Loop.Batch,
		Every:  s.cfg.ReapEvery,
		Settle: s.cfg.Loop.Settle,
		Late:   s.cfg.Lease / renewals,
		Reaper: s.cfg.Reaper,
		OnPass: func(pass reaper.Pass) { s.count(metrics.Job, pass) },
	})
	if err != nil {
		return err
	}
	s.cfg.Handlers[reapjob.Kind] = s.reapJob.Handle
	return nil
}

func (s *Service) makeMetrics() error {
	look, err := reaper.New(s.pool, reaper.Config{CountUpTo: 100_000})
	if err != nil {
		return err
	}
	s.metrics = metrics.New(slices.Sorted(maps.Keys(s.cfg.Handlers)))
	s.metrics.Queue(metrics.Queue{Pool: s.pool, Reaper: look, Logger: s.cfg.Logger})
	return nil
}

// makeLoop makes the loop that runs next to the worker. As a watchdog it waits for
// longer, so that it finds only what the reap job has not.
func (s *Service) makeLoop() (err error) {
	cfg := s.cfg.Reaper
	if s.cfg.ReapAsJob {
		cfg.Grace += s.cfg.WatchdogGrace
	}
	s.loop, err = reaper.New(s.pool, cfg)
	s.ready.loop = s.loop
	return err
}

func (s *Service) makeWorker() error {
	q, err := queue.New(s.pool, queue.Config{
		Name:           s.cfg.Name,
		Lease:          s.cfg.Lease,
		BackoffBaseSec: s.cfg.BackoffBaseSec,
		DeadLetter:     s.cfg.Reaper.DeadLetter,
	})
	if err != nil {
		return err
	}
	s.worker, err = work.New(q, work.Config{
		Handlers: s.cfg.Handlers,
		Slots:    s.cfg.Slots,
		Poll:     s.cfg.Poll,
		Grace:    s.cfg.Grace,
		OnEnd:    s.metrics.Ended,
		Logger:   s.cfg.Logger,
	})
	if err != nil {
		return err
	}
	s.metrics.Running(s.worker.Running)
	return nil
}

// Run works until ctx ends and the running jobs have ended, in their grace. The
// reaper ends at once: there are others, and nothing is left half done. Metrics
// are served to the end. It closes listener. It returns nil for an end in order,
// [work.ErrAbandoned] when handlers would not stop, and else why it could not go on.
func (s *Service) Run(ctx context.Context, listener net.Listener) error {
	outer := ctx
	ctx, fail := context.WithCancelCause(outer)
	defer fail(nil)
	server := s.server(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { serve(server, listener, fail) })
	parts.Go(func() { s.reap(ctx, fail) })
	s.log(ctx, slog.LevelInfo, "serving", slog.String("addr", listener.Addr().String()))

	err := s.worker.Run(ctx)
	if outer.Err() == nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	s.log(ctx, slog.LevelInfo, "stopped working", slog.Any("err", err))
	err = errors.Join(err, shutdown(ctx, server))
	parts.Wait()
	return err
}

// reap runs the loop until ctx ends.
func (s *Service) reap(ctx context.Context, fail context.CancelCauseFunc) {
	s.verify(ctx)
	s.seed(ctx)
	cfg := s.cfg.Loop
	cfg.OnPass = s.passed
	if err := s.loop.Run(ctx, s.cfg.Name, cfg); ctx.Err() == nil {
		fail(fmt.Errorf("service: reap: %w", err))
	}
}

// passed also sees to it that there is a reap job: the last one may be among the
// dead letters, or have been deleted.
func (s *Service) passed(ctx context.Context, pass reaper.Pass) {
	s.count(metrics.Loop, pass)
	if pass.Err == nil {
		s.seed(ctx)
	}
}

func (s *Service) count(source string, pass reaper.Pass) {
	s.metrics.Passed(source, pass)
	s.passes.Add(context.Background(), pass)
}

func (s *Service) seed(ctx context.Context) {
	if s.reapJob == nil {
		return
	}
	if err := s.reapJob.Seed(ctx); err != nil && ctx.Err() == nil {
		s.log(ctx, slog.LevelError, "no reap job could be added", slog.Any("err", err))
	}
}

// verify logs what keeps the reaper from working as it should. It does not keep
// the service from starting: jobs can be done without a reaper.
func (s *Service) verify(ctx context.Context) {
	report, err := s.loop.Verify(ctx)
	if err != nil {
		s.log(ctx, slog.LevelError, "set-up was not verified", slog.Any("err", err))
		return
	}
	for _, problem := range report.Problems {
		s.log(ctx, slog.LevelWarn, "problem in the set-up",
			slog.String("code", problem.Code),
			slog.String("object", problem.Object),
			slog.String("problem", problem.Message),
			slog.String("fix", problem.Fix),
		)
	}
}

func (s *Service) log(ctx context.Context, level slog.Level, message string, attrs ...slog.Attr) {
	s.cfg.Logger.LogAttrs(ctx, level, message, attrs...) //nolint:sloglint // constant at each call
}
