// Package service puts a worker together: the jobs, the reaper, and
// what one needs to know of both from outside.
package service

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/examples/worker/work"
	"github.com/lease-governance/leasereaper/reaper"
)

// Config says how a service works. Its zero value works, but for the handlers.
type Config struct {
	// Name tells this process from all others, in leases, dead letters and logs.
	// Default "worker".
	Name string

	// Handlers by kind, as in [work.Config].
	Handlers map[string]work.Handler

	// Slots is how many jobs run at once. Default 4.
	Slots int

	// Lease is how long a worker may be silent before its jobs are given to others.
	// Default 30 s.
	Lease time.Duration

	// Poll is how long a worker with nothing to do waits. Default 1 s.
	Poll time.Duration

	// Grace is how long running jobs may go on at a shutdown. Default 20 s.
	Grace time.Duration

	// BackoffBaseSec is the base of the wait after a failed try, in seconds.
	// Default 10. For reaped jobs operators set it in the database.
	BackoffBaseSec int64

	// Reaper is the reaper's configuration, but for its Logger.
	Reaper reaper.Config

	// Loop is how the reaper's loop runs, but for its OnPass.
	Loop reaper.RunConfig

	// ReapAsJob makes a job of the reaper, and its loop the watchdog of that job.
	ReapAsJob bool

	// ReapEvery is how often the reap job runs. Default 5 s.
	ReapEvery time.Duration

	// WatchdogGrace is how long a lease must have been stale before the watchdog
	// reaps it, on top of the Reaper's Grace. Too short, and it does the reap job's
	// work; too long, and so long nobody does, when the reap job's worker has died.
	// Default six times ReapEvery.
	WatchdogGrace time.Duration

	// Console is a pool for the console, which is then served under /console/. It should not
	// be the worker's. Default nil: there is no console.
	Console *pgxpool.Pool

	// Access is as in [console.Config]. Default nil: everybody may look, and nobody may act.
	Access func(*http.Request) (actor string, level console.Level, err error)

	// History is as in [console.Database]. What it reads is written by the Reaper's OnApply.
	// Default nil: the console has no history.
	History console.History

	// Logger gets everything. Default nil: nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "worker")
	c.ReapEvery = cmp.Or(c.ReapEvery, 5*time.Second)
	c.WatchdogGrace = cmp.Or(c.WatchdogGrace, 6*c.ReapEvery)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Reaper.Logger = c.Logger
	return c
}
