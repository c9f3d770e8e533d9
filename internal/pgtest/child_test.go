package pgtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// deeds has the actions of a child. A child prints its errors.
var deeds = map[string]func(context.Context) error{
	"hold":     hold,
	"use":      useAtOnce,
	"return":   openAndReturn,
	"shutdown": shutDown,
	"crash":    crash,
}

// hold starts a server, prints its folder and waits to be killed.
func hold(ctx context.Context) error {
	server, err := pgtest.Start(ctx, pgtest.ServerConfig{})
	if err != nil {
		return err
	}
	fmt.Println(server.Folder())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// useAtOnce uses several databases at once.
func useAtOnce(ctx context.Context) error {
	var faults [4]error
	var group sync.WaitGroup
	for i := range faults {
		group.Go(func() { faults[i] = use(ctx) })
	}
	group.Wait()
	return errors.Join(faults[:]...)
}

func use(ctx context.Context) error {
	database, err := pgtest.Open(ctx)
	if err != nil {
		return err
	}
	_, err = database.Pool.Exec(ctx, `insert into job_queue (job_kind) values ('x')`)
	return errors.Join(err, database.Close())
}

// openAndReturn returns without a call of Shutdown.
func openAndReturn(ctx context.Context) error {
	_, err := pgtest.Open(ctx)
	return err
}

// shutDown looks for remaining files between the runs of two servers.
func shutDown(ctx context.Context) error {
	for range 2 {
		if err := use(ctx); err != nil {
			return err
		}
		if err := pgtest.Shutdown(); err != nil {
			return err
		}
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
			return fmt.Errorf("left behind: %q", left)
		}
	}
	return pgtest.Shutdown()
}

// crash kills the server of the process and opens databases until an error reports that.
func crash(ctx context.Context) error {
	database, err := pgtest.Open(ctx)
	if err != nil {
		return err
	}
	_, _ = database.Pool.Exec(ctx, `copy (select) to program 'kill -KILL $(head -n 1 postmaster.pid)'`)
	for end := time.Now().Add(soon); time.Now().Before(end); {
		if _, err = pgtest.Open(ctx); err != nil && strings.Contains(err.Error(), "the server has ended") {
			return nil
		}
	}
	return fmt.Errorf("the error is none of a crash: %w", err)
}
