// Operator is the tool of those who run a queue: it shows the gates and what a
// reaper would do, applies what was reviewed, drains a backlog, and watches.
//
//	leasereaper --database-url postgres://... dry-run
//	leasereaper --embedded apply
//
// Whatever changes a table shows first what will happen and asks, unless --yes
// is given. README.md has each command with what it prints.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx := untilSignal()
	signal.Ignore(syscall.SIGPIPE) // a reader who leaves early, as head does, is an error like any other

	t := &tool{in: os.Stdin, out: os.Stdout, errs: os.Stderr}
	os.Exit(t.main(ctx, os.Args[1:]))
}

// untilSignal is a context that ends at the first signal. From then on a signal ends the
// program at once.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-first
		signal.Stop(first) // before ctx ends, and says so
		cancel()
	}()
	return ctx
}
