package soak

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// site is a queue with its server, its load, and what was seen of it.
type site struct {
	cfg    Config
	design design
	server *bed.Server
	queue  *bed.Queue

	workers *pgxpool.Pool
	reapers [reapers]*pgxpool.Pool
	watcher *pgxpool.Pool // takes the samples
	old     *pgxpool.Pool // has the old transaction
	held    pgx.Tx        // nil: it is not open

	claims  atomic.Int64
	tally   tally
	samples []Sample
	last    reading
}

// open starts a server and makes a queue on it.
func open(ctx context.Context, cfg Config, d design) (*site, error) {
	server, err := bed.StartWith(ctx, cfg.Small, serverSettings(cfg))
	if err != nil {
		return nil, err
	}
	s := &site{cfg: cfg, design: d, server: server}
	if err := s.fill(ctx); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

func (s *site) fill(ctx context.Context) (err error) {
	if s.queue, err = s.server.Clone(ctx, s.design.fixture(s.cfg.later())); err != nil {
		return err
	}
	many := func(config *pgxpool.Config) { config.MaxConns = connections }
	if s.workers, err = s.queue.Connect(ctx, many); err != nil {
		return err
	}
	named := func(config *pgxpool.Config) { config.ConnConfig.RuntimeParams["application_name"] = oldName }
	if s.old, err = s.queue.Connect(ctx, named); err != nil {
		return err
	}
	for i := range s.reapers {
		if s.reapers[i], err = s.queue.Connect(ctx); err != nil {
			return err
		}
	}
	s.watcher, err = s.queue.Connect(ctx)
	return err
}

// serverSettings are PostgreSQL's defaults where the benchmarks have others. Its
// autovacuum looks at the tables each minute; a short soak is an hour in little.
func serverSettings(cfg Config) map[string]string {
	naptime := max(1, math.Round(cfg.interval().Seconds()))
	return map[string]string{
		"autovacuum":         "on",
		"autovacuum_naptime": fmt.Sprintf("%.0fs", naptime),
		"checkpoint_timeout": "5min",
	}
}

// start starts the load.
func (s *site) start(crew *crew) {
	crew.start(s.produce)
	for n := range workers {
		crew.start(func(ctx context.Context) error { return s.work(ctx, n) })
	}
	for _, pool := range s.reapers {
		crew.start(func(ctx context.Context) error { return s.reap(ctx, pool) })
	}
}

// turn opens the transaction after the first third of the samples, and ends it after
// the second.
func (s *site) turn(ctx context.Context, n, count int) (err error) {
	switch n {
	case count / 3:
		s.held, err = s.old.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err == nil {
			_, err = s.held.Exec(ctx, `select from job_queue limit 1`)
		}
	case count / 3 * 2:
		err = s.held.Rollback(ctx)
		s.held = nil
	}
	return err
}

// close ends the server. The load has ended before.
func (s *site) close(ctx context.Context) (err error) {
	if s.held != nil {
		_ = s.held.Rollback(context.WithoutCancel(ctx))
	}
	if s.queue != nil {
		err = s.queue.Close(ctx)
	}
	return errors.Join(err, s.server.Stop())
}

// since is the time since a moment, in seconds.
func since(began time.Time) float64 { return time.Since(began).Seconds() }
