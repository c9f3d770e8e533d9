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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)   // a second Ctrl-C does not wait for the first
	signal.Ignore(syscall.SIGPIPE) // a reader who leaves early, as head does, is an error like any other

	t := &tool{in: os.Stdin, out: os.Stdout, errs: os.Stderr}
	os.Exit(t.main(ctx, os.Args[1:]))
}
