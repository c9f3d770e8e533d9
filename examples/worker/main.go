// Worker is a service to start from: it does the jobs of a queue, and runs the
// lease reaper in the same process.
//
//	go run . --demo
//
// shows three of it at work, and kills one now and then. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/examples/worker/demo"
	"github.com/lease-governance/leasereaper/examples/worker/jobs"
	"github.com/lease-governance/leasereaper/examples/worker/reapjob"
	"github.com/lease-governance/leasereaper/examples/worker/service"
	"github.com/lease-governance/leasereaper/examples/worker/work"
	"github.com/lease-governance/leasereaper/reaper"
)

// Exit codes.
const (
	exitError = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait for the jobs

	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.As(err, &usage):
		os.Exit(exitUsage)
	default:
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(exitError)
	}
}

// run does what the arguments ask for.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := parse(args, os.LookupEnv, stderr)
	if err != nil {
		return err
	}
	if o.demo {
		return demo.Run(ctx, stdout, demo.Config{For: o.demoFor, ReapAsJob: o.reapAsJob})
	}
	if o.stopOnEOF {
		var stop context.CancelFunc
		ctx, stop = untilEOF(ctx, stdin)
		defer stop()
	}
	return serve(ctx, o, stderr)
}

// serve runs the service until ctx ends.
func serve(ctx context.Context, o options, stderr io.Writer) (err error) {
	pool, err := service.OpenPool(ctx, o.databaseURL, o.name, o.slots)
	if err != nil {
		return err
	}
	defer func() {
		if !errors.Is(err, work.ErrAbandoned) { // whose handlers may hold connections for ever
			pool.Close()
		}
	}()
	if o.init {
		if err := createTables(ctx, pool, o.audit); err != nil {
			return err
		}
	}
	cfg := o.service(stderr)
	if o.console {
		if cfg.Console, err = service.OpenPool(ctx, o.databaseURL, o.name+" console", 0); err != nil {
			return err
		}
		defer cfg.Console.Close()
	}
	s, err := service.New(pool, cfg)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	return s.Run(ctx, listener)
}

// createTables makes what is missing. The gates stay closed.
func createTables(ctx context.Context, pool *pgxpool.Pool, audit bool) error {
	schemas := []string{reaper.Schema, reapjob.Schema, jobs.Schema}
	if audit {
		schemas = append(schemas, service.AuditSchema)
	}
	for _, schema := range schemas {
		if _, err := pool.Exec(ctx, schema); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	return nil
}

// untilEOF returns a context that ends with in.
func untilEOF(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	return ctx, stop
}
