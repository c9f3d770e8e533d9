// Quickstart shows the lease reaper at work: a small queue whose workers died,
// what a dry run says of it, the four ways an apply refuses, and what an apply
// does once it may.
//
//	go run ./examples/quickstart
//
// It starts a PostgreSQL for itself, or uses the one that DATABASE_URL names.
// Either way it works in a schema of its own and removes that at the end, also
// after an error or Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/lease-governance/leasereaper/reaper"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)   // a second Ctrl-C does not wait for the clean-up
	signal.Ignore(syscall.SIGPIPE) // a reader who leaves early, as head does, is an error like any other

	if err := run(ctx, os.Stdout, os.Getenv("DATABASE_URL")); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run tells the whole story on out. An empty url means a temporary database.
func run(ctx context.Context, out io.Writer, url string) (err error) {
	server, err := connect(ctx, out, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.close()) }()

	space, err := openWorkspace(ctx, server.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, space.remove(ctx)) }()

	fmt.Fprintln(out, "The lease reaper at work, in a schema of its own that is gone afterwards.")
	return tell(ctx, out, space)
}

// tell fills the queue and shows the steps one after the other.
func tell(ctx context.Context, out io.Writer, space *workspace) error {
	if err := space.fill(ctx); err != nil {
		return err
	}
	r, err := reaper.New(space.pool, reaper.Config{})
	if err != nil {
		return err
	}
	s := &story{out: out, queue: queue{space.pool}, reaper: r}
	steps := []func(context.Context) error{
		s.before, s.dryRun, s.refusals, s.apply, s.after, s.deadLetters,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
