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
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// timeout bounds a connection attempt, and the clean-up.
const timeout = 10 * time.Second

var errNotAURL = errors.New("DATABASE_URL is not a PostgreSQL connection string")

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
	if url != "" {
		config, err := pgxpool.ParseConfig(url)
		if err != nil {
			return errNotAURL // the parser's own error may quote a part of the password
		}
		return runIn(ctx, out, "DATABASE_URL", config)
	}
	fmt.Fprintln(out, "DATABASE_URL is not set: making a temporary database.")
	defer func() { err = errors.Join(err, pgtest.Shutdown()) }()
	database, err := pgtest.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	return runIn(ctx, out, "temporary database", database.Pool.Config())
}

// runIn works in a schema of its own, which is the only one on the search path.
// An error to connect has the database's name.
func runIn(ctx context.Context, out io.Writer, name string, config *pgxpool.Config) (err error) {
	schema := "leasereaper_quickstart_" + strings.ToLower(rand.Text()[:8])
	config.ConnConfig.RuntimeParams["search_path"] = schema
	config.ConnConfig.ConnectTimeout = timeout
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		// pgx's error has a line for each address that it tried.
		return fmt.Errorf("%s: %s", name, strings.Join(strings.Fields(err.Error()), " "))
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		_, dropped := pool.Exec(ctx, `drop schema if exists `+schema+` cascade`)
		err = errors.Join(err, dropped)
	}()
	if _, err := pool.Exec(ctx, `create schema `+schema); err != nil {
		return fmt.Errorf("create schema: %w", err)
	}
	fmt.Fprintln(out, "The lease reaper at work, in a schema of its own that is gone afterwards.")
	return tell(ctx, out, pool)
}
