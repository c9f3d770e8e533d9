package reapjob_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/reapjob"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

const (
	// live counts the reap jobs that have not ended.
	live = `select count(*) from job_queue where job_kind = 'queue.lease.reap' and state in ('ready', 'retry_waiting', 'leased')`

	// all counts the reap jobs there are.
	all = `select count(*) from job_queue where job_kind = 'queue.lease.reap'`

	// due makes the next reap job due.
	due = `update job_queue set scheduled_at = now() where job_kind = 'queue.lease.reap'`
)

// seeders is how many workers add the first reap job at once.
const seeders = 10

var errCrash = errors.New("the worker died here")

// bench is a queue, a reap job over it, and the passes that it reports.
type bench struct {
	pool   *pgxpool.Pool
	queue  *queue.Queue
	job    *reapjob.Job
	passes []reaper.Pass
}

func open(t *testing.T, cfg reapjob.Config) *bench {
	t.Helper()
	b := &bench{pool: pgtest.Connect(t, fixture.Queue(t), func(c *pgxpool.Config) { c.MaxConns = 2 * seeders })}
	cfg.Actor = "test-reaper"
	cfg.Settle = cmp.Or(cfg.Settle, 1)
	cfg.OnPass = func(pass reaper.Pass) { b.passes = append(b.passes, pass) }
	var err error
	b.job, err = reapjob.New(b.pool, cfg)
	require.NoError(t, err)
	b.queue, err = queue.New(b.pool, queue.Config{})
	require.NoError(t, err)
	require.NoError(t, b.job.Seed(t.Context()))
	return b
}

// claim claims the reap job.
func (b *bench) claim(t *testing.T) queue.Job {
	t.Helper()
	jobs, err := b.queue.Claim(t.Context(), []string{reapjob.Kind}, 10)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	return jobs[0]
}

// do does a reap job as a worker does. then is called after its effects.
func (b *bench) do(t *testing.T, job queue.Job, then func() error) error {
	t.Helper()
	done, err := b.job.Handle(t.Context(), job)
	require.NoError(t, err)
	err = b.queue.Complete(t.Context(), job, func(ctx context.Context, tx pgx.Tx) error {
		return errors.Join(done.Effects(ctx, tx), then())
	})
	if err == nil {
		done.Committed()
	}
	return err
}

func well() error { return nil }

// stale adds jobs of dead workers.
func (b *bench) stale(t *testing.T, n int) {
	t.Helper()
	fixture.Exec(t, b.pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		select 'send', 'leased', 'dead', now() - interval '1 minute' from generate_series(1, $1::int)`, n)
}

const left = `select count(*) from job_queue where job_kind = 'send' and state = 'leased'`

// watch lets the leases end and has a watchdog find them.
func (b *bench) watch(t *testing.T) {
	t.Helper()
	fixture.Exec(t, b.pool, `update job_queue set lease_until = now() - interval '1 minute' where state = 'leased'`)
	watchdog, err := reaper.New(b.pool, reaper.Config{Grace: 30 * time.Second})
	require.NoError(t, err)
	result, err := watchdog.Apply(t.Context(), "watchdog", 10)
	require.NoError(t, err)
	require.Len(t, result.Actions, 1)
}
