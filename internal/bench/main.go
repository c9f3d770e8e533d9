// Bench measures the lease reaper against the reference function, against the
// best single SQL statement for the same work, and against its peers.
//
//	go run -C internal/bench .
//
// It starts a PostgreSQL of its own, makes its own data, and prints what it found.
// It takes about half an hour, and a machine that does nothing else. With -smoke it
// takes seconds, and the figures mean nothing. With -docs ../../docs it writes the
// tables and the plots of docs/performance.md. With -soak 60m it runs only the soak, which
// takes that long.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/load"
	"github.com/lease-governance/leasereaper/internal/bench/report"
	"github.com/lease-governance/leasereaper/internal/bench/soak"
	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean-up

	err := run(ctx, os.Stdout, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	smoke bool
	only  *regexp.Regexp
	json  string
	docs  string
	from  string
	soak  time.Duration
}

func parse(arguments []string) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.smoke, "smoke", false, "tiny sizes: show in seconds that every scenario works")
	only := flags.String("run", "", "run only the scenarios whose name matches this `regexp`")
	flags.StringVar(&o.json, "json", "", "write what was found into this `file`")
	flags.StringVar(&o.docs, "docs", "", "write the plots into this `folder`, and the tables into its performance.md")
	flags.StringVar(&o.from, "from", "", "measure nothing, and show what -json wrote into this `file`")
	flags.DurationVar(&o.soak, "soak", 0, "run only the soak, for this `duration` of at least 3s")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.soak != 0 && o.soak < 3*time.Second {
		return o, fmt.Errorf("-soak %s is too short: it takes at least 3s", o.soak)
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

func run(ctx context.Context, out io.Writer, arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	found, err := o.find(ctx, out)
	if err != nil {
		return err
	}
	if o.json != "" {
		if err := found.Write(o.json); err != nil {
			return err
		}
	}
	if o.docs != "" {
		if err := found.Docs(o.docs); err != nil {
			return err
		}
	}
	return found.Print(out)
}

// find measures, or reads what was measured before.
func (o options) find(ctx context.Context, out io.Writer) (found report.Report, err error) {
	if o.from != "" {
		return report.Read(o.from)
	}
	machine := load.New("/proc", func() { o.pause(ctx) })
	machine.Look()
	fmt.Fprintln(out, "is the machine quiet?", machine.Verdict())
	if o.soak != 0 {
		return o.runSoak(ctx, out, machine)
	}
	b, err := bed.Start(ctx, o.smoke)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()

	env := &suite.Env{Server: b, Size: suite.Full}
	if o.smoke {
		env.Size = suite.Smoke
	}
	if found.Environment, err = env.Environment(ctx); err != nil {
		return found, err
	}
	began := time.Now()
	found.Result, err = suite.Run(ctx, env, o.only, func(s suite.Scenario) {
		machine.Look()
		fmt.Fprintf(out, "%6.0fs  %s: %s\n", time.Since(began).Seconds(), s.Name, s.About)
	})
	machine.Look()
	fmt.Fprintf(out, "%6.0fs\n\n", time.Since(began).Seconds())
	found.Environment = append(found.Environment, machine.Settings()...)
	return found, err
}

// runSoak runs the soak alone.
func (o options) runSoak(ctx context.Context, out io.Writer, machine *load.Machine) (report.Report, error) {
	began := time.Now()
	result, err := soak.Run(ctx, soak.Config{Length: o.soak, Small: o.smoke}, func(sample int) {
		fmt.Fprintf(out, "%6.0fs  sample %d\n", time.Since(began).Seconds(), sample)
	})
	if err != nil {
		return report.Report{}, err
	}
	machine.Look()
	result.Environment = append(result.Environment, machine.Settings()...)
	return report.Report{Soak: &result}, nil
}

// pause does nothing for as long as it takes to see what else the machine does.
func (o options) pause(ctx context.Context) {
	pause := 2 * time.Second
	if o.smoke {
		pause = 20 * time.Millisecond
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}
