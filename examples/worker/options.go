package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/examples/worker/jobs"
	"github.com/lease-governance/leasereaper/examples/worker/service"
	"github.com/lease-governance/leasereaper/reaper"
)

// usageError is a fault of whoever wrote the command line, who was told already.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

var errNoDatabase = errors.New("no database: give --database-url, or DATABASE_URL, or --demo")

// options are the flags.
type options struct {
	databaseURL string
	listen      string
	name        string
	init        bool
	stopOnEOF   bool
	debug       bool

	slots          int
	lease          time.Duration
	poll           time.Duration
	grace          time.Duration
	backoffBaseSec int64

	interval    time.Duration
	minInterval time.Duration
	settle      time.Duration
	maxStale    int

	reapAsJob     bool
	reapEvery     time.Duration
	watchdogGrace time.Duration

	console      bool
	consoleActor string
	audit        bool

	demo    bool
	demoFor time.Duration
}

// flags tells a flag set of the options and their defaults.
func (o *options) flags(f *flag.FlagSet) {
	f.StringVar(&o.databaseURL, "database-url", "", "the database's `URL`; else DATABASE_URL")
	f.StringVar(&o.listen, "listen", "127.0.0.1:9464", "the `address` of /metrics, /healthz, /readyz and /console/")
	f.StringVar(&o.name, "name", ownName(), "tells this process from all others, in leases and logs")
	f.BoolVar(&o.init, "init", false, "create the tables that are missing, first")
	f.BoolVar(&o.stopOnEOF, "stop-on-eof", false, "stop when standard input ends, as at SIGTERM")
	f.BoolVar(&o.debug, "debug", false, "log also the jobs that succeed")

	f.IntVar(&o.slots, "workers", 4, "how many jobs run at once")
	f.DurationVar(&o.lease, "lease", 30*time.Second, "how long a worker may be silent until others get its jobs")
	f.DurationVar(&o.poll, "poll", time.Second, "how long a worker with nothing to do waits")
	f.DurationVar(&o.grace, "grace", 20*time.Second, "how long running jobs may go on at SIGTERM")
	f.Int64Var(&o.backoffBaseSec, "backoff-base-sec", 10, "base of the wait after a failed try, in `seconds`")

	f.DurationVar(&o.interval, "interval", 30*time.Second, "the reaper's longest sleep; no longer than the leases")
	f.DurationVar(&o.minInterval, "min-interval", time.Second, "the reaper's shortest sleep")
	f.DurationVar(&o.settle, "settle", 30*time.Second,
		"how long workers may renew after an outage before any is reaped")
	f.IntVar(&o.maxStale, "max-stale", 10_000,
		"when more than `N` leases are stale, reap none: a person should look; 0: never mind")

	f.BoolVar(&o.reapAsJob, "reap-as-job", false, "make the reaper a job of the queue, and its loop the watchdog")
	f.DurationVar(&o.reapEvery, "reap-every", 5*time.Second, "how often the reap job runs")
	f.DurationVar(&o.watchdogGrace, "watchdog-grace", 0,
		"how long the watchdog leaves a stale lease to the reap job (default 6 times --reap-every)")

	f.BoolVar(&o.console, "console", false, "serve the console under /console/")
	f.StringVar(&o.consoleActor, "console-actor", "",
		"let everybody on this machine act in the console, under this `name`; else they only look")
	f.BoolVar(&o.audit, "audit", false, "store what each apply did in the table reaper_audit")

	f.BoolVar(&o.demo, "demo", false, "show three workers on a database of their own, and kill one now and then")
	f.DurationVar(&o.demoFor, "demo-for", 20*time.Second, "how long the demo goes on, about")
}

// parse reads the arguments, and for what they leave out the environment:
// WORKER_LISTEN for --listen, and so on.
func parse(args []string, lookup func(string) (string, bool), stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("worker", flag.ContinueOnError)
	f.SetOutput(stderr)
	o.flags(f)
	if err := fromEnvironment(f, lookup); err != nil {
		return options{}, complain(stderr, err)
	}
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return options{}, err
		}
		return options{}, &usageError{err}
	}
	switch {
	case f.NArg() > 0:
		return options{}, complain(stderr, fmt.Errorf("unexpected argument %q", f.Arg(0)))
	case o.databaseURL == "" && !o.demo:
		return options{}, complain(stderr, errNoDatabase)
	case o.consoleActor != "" && !isLocal(o.listen):
		return options{}, complain(stderr, errNotLocal)
	}
	return o, nil
}

// fromEnvironment sets the flags that the environment has a value for.
func fromEnvironment(f *flag.FlagSet, lookup func(string) (string, bool)) error {
	var faults []error
	f.VisitAll(func(flag *flag.Flag) {
		variable := "WORKER_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if flag.Name == "database-url" {
			variable = "DATABASE_URL"
		}
		value, ok := lookup(variable)
		if !ok || value == "" {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", variable, err))
		}
	})
	return errors.Join(faults...)
}

func complain(stderr io.Writer, err error) error {
	fmt.Fprintln(stderr, "worker:", err)
	return &usageError{err}
}

// service is the configuration of the service.
func (o *options) service(stderr io.Writer) service.Config {
	level := slog.LevelInfo
	if o.debug {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	cfg := service.Config{
		Name:           o.name,
		Handlers:       jobs.Handlers(),
		Slots:          o.slots,
		Lease:          o.lease,
		Poll:           o.poll,
		Grace:          o.grace,
		BackoffBaseSec: o.backoffBaseSec,
		Reaper:         reaper.Config{MaxStale: o.maxStale},
		Loop:           reaper.RunConfig{Interval: o.interval, MinInterval: o.minInterval, Settle: o.settle},
		ReapAsJob:      o.reapAsJob,
		ReapEvery:      o.reapEvery,
		WatchdogGrace:  o.watchdogGrace,
		Access:         o.access(),
		Logger:         logger.With(slog.String("worker", o.name)),
	}
	if o.audit {
		cfg.Reaper.OnApply, cfg.History = console.Audit{}.Write, console.Audit{}
	}
	return cfg
}

// ownName is the host's name and the process's number. In containers the number
// is the same for all, and the host's name tells them apart.
func ownName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
