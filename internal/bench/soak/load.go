package soak

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/reaper"
)

// The load of one queue.
const (
	rate        = 40 // new jobs a second
	workers     = 60
	connections = 8 // that the workers share
	reapers     = 2

	batch    = 25              // jobs that a worker claims at once
	idle     = 3 * time.Second // between two claims that find no job
	renewals = 2               // while a worker works at a batch
	mortal   = 10              // one claim in so many is of a worker that dies
)

// lease is as long as the Interval of a loop is by default. A soak of less than ten
// minutes has shorter leases.
func (c Config) lease() time.Duration { return min(30*time.Second, c.Length/20) }

// renewal is the time between two renewals.
func (c Config) renewal() time.Duration { return c.lease() / 3 }

// sqlProduce adds jobs.
//
//	$1 how many  bigint
const sqlProduce = `-- soak.produce
insert into job_queue (job_kind, payload, max_attempts)
select 'now', jsonb_build_object('order', n, 'note', repeat(md5(n::text), 6)), 2
from generate_series(1, $1::bigint) as n`

// produce adds jobs at the rate. After a delay it makes up for what it missed.
func (s *site) produce(ctx context.Context) error {
	began, made := time.Now(), 0
	for second := 1; ; second++ {
		owed := int(time.Since(began).Seconds()*rate) + rate - made
		if _, err := s.workers.Exec(ctx, sqlProduce, owed); err != nil {
			return err
		}
		made += owed
		if err := sleep(ctx, time.Until(began.Add(time.Duration(second)*time.Second))); err != nil {
			return err
		}
	}
}

// reap runs a loop with the library's defaults, but without Settle, since the server has
// just started.
func (s *site) reap(ctx context.Context, pool *pgxpool.Pool) error {
	lib, err := reaper.New(pool, reaper.Config{})
	if err != nil {
		return err
	}
	return lib.Run(ctx, "soak", reaper.RunConfig{
		Interval: s.cfg.lease(), Settle: time.Nanosecond,
		OnPass: func(_ context.Context, pass reaper.Pass) { s.tally.pass(pass) },
	})
}
