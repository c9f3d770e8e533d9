// Bench measures the lease reaper against the reference function, against the
// best single SQL statement for the same work, and against its peers.
//
//	go run -C internal/bench .
//
// It starts a PostgreSQL of its own, makes its own data, and prints a table. It
// takes about a quarter of an hour; with -smoke, seconds, and then the figures
// mean nothing.
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
	"github.com/lease-governance/leasereaper/internal/bench/report"
	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean-up

	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	smoke bool
	only  *regexp.Regexp
}

func parse(arguments []string) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.smoke, "smoke", false, "tiny sizes: show that every scenario works, in seconds")
	only := flags.String("run", "", "run only the scenarios whose name matches this `regexp`")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

func run(ctx context.Context, out io.Writer, arguments []string) (err error) {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	b, err := bed.Start(ctx, o.smoke)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()

	env := &suite.Env{Bed: b, Size: suite.Full}
	if o.smoke {
		env.Size = suite.Smoke
	}
	began := time.Now()
	result, err := suite.Run(ctx, env, o.only, func(s suite.Scenario) {
		fmt.Fprintf(out, "%7.1fs  %s: %s\n", time.Since(began).Seconds(), s.Name, s.About)
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	return report.Print(out, result)
}
