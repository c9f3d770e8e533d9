package river_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/queues/internal/library"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// asWorker is a variable of the environment. With it, the tests' binary runs a River
// worker instead of the tests; its value says how the jobs end.
const asWorker = "LEASEREAPER_RIVER_WORKER"

// How a worker's jobs end: not at all, well, or with an error.
const (
	hang   = "hang"
	finish = "finish"
	fail   = "fail"
)

func TestMain(m *testing.M) {
	if outcome := os.Getenv(asWorker); outcome != "" {
		if err := work(context.Background(), outcome); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// order is the one kind of job.
type order struct{}

func (order) Kind() string { return "order" }

// worker ends each job as outcome says.
type worker struct {
	river.WorkerDefaults[order]

	outcome string
}

func (w *worker) Work(ctx context.Context, _ *river.Job[order]) error {
	switch w.outcome {
	case hang:
		<-ctx.Done()
		return ctx.Err()
	case fail:
		return errors.New("no such order")
	}
	return nil
}

// work runs a River client until it is killed. Its rescuer is on, and leaves jobs alone
// that have run for less than an hour.
func work(ctx context.Context, outcome string) error {
	pool, err := pgxpool.New(ctx, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{outcome: outcome})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}},
		Workers:           workers,
		FetchPollInterval: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// start starts a worker as a process of its own.
func start(t *testing.T, pool *pgxpool.Pool, outcome string) *library.Process {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = []string{asWorker + "=" + outcome}
	return library.Start(t, pool, command)
}

// open is a database with River's tables, and a client that inserts.
func open(t *testing.T) (*pgxpool.Pool, *river.Client[pgx.Tx]) {
	t.Helper()
	pool := pgtest.Empty(t)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	require.NoError(t, err)
	return pool, client
}

// loseAJob inserts a job and kills the worker that works on it. It then dates the job's
// start back, so that its lease has expired.
func loseAJob(t *testing.T, pool *pgxpool.Pool, client *river.Client[pgx.Tx], maxAttempts int) int64 {
	t.Helper()
	inserted, err := client.Insert(t.Context(), order{}, &river.InsertOpts{MaxAttempts: maxAttempts})
	require.NoError(t, err)
	lost := start(t, pool, hang)
	library.Eventually(t, pool, `select state = 'running' from river_job where id = $1`, inserted.Job.ID)
	lost.Kill()
	// The killed client was the leader, which makes waiting jobs available. Nobody else
	// could be elected for up to 15 seconds.
	library.Exec(t, pool, `delete from river_leader`)
	library.Exec(t, pool, `update river_job set attempted_at = now() - interval '11 minutes' where id = $1`, inserted.Job.ID)
	return inserted.Job.ID
}
