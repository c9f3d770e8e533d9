package queue_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Two workers at one job, or a job that no worker takes.
func TestManyWorkersClaimEachJobOnce(t *testing.T) {
	t.Parallel()
	const jobs, workers = 400, 8
	pool := fixture.Queue(t)
	fixture.Exec(t, pool, `insert into job_queue (job_kind) select $1 from generate_series(1, $2::int)`, kind, jobs)

	claimed := make(chan queue.Job, 2*jobs)
	var group sync.WaitGroup
	for range workers {
		q := open(t, pool, queue.Config{})
		group.Go(func() {
			for len(claimed) < jobs {
				found, err := q.Claim(t.Context(), []string{kind}, 7)
				if err != nil {
					t.Error(err)
					return
				}
				for _, job := range found {
					claimed <- job
				}
			}
		})
	}
	group.Wait()
	close(claimed)

	ids, owners := map[string]bool{}, map[string]int{}
	for job := range claimed {
		ids[job.ID] = true
		owners[job.Owner]++
	}
	require.Len(t, ids, jobs)
	for owner, n := range owners {
		require.LessOrEqual(t, n, 7, "%s has more than one claim", owner)
	}
}

// A job of a kind that this worker cannot do, one that waits for its next try, one
// that has ended, or the newest before the oldest.
func TestClaimTakesWhatIsDueOldestFirst(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, fixture.Queue(t), func(c *pgxpool.Config) { // nothing is in order by itself
		c.ConnConfig.RuntimeParams["enable_indexscan"] = "off"
		c.ConnConfig.RuntimeParams["enable_bitmapscan"] = "off"
	})
	fixture.Exec(t, pool, `insert into job_queue (job_kind, state, attempts, payload, scheduled_at) values
		('send', 'ready',         0, '{"n": 3}', now() - interval '1 s'),
		('send', 'retry_waiting', 2, '{"n": 1}', now() - interval '9 s'),
		('sing', 'ready',         0, '{"n": 2}', now() - interval '5 s'),
		('walk', 'ready',         0, '{}',       now() - interval '1 h'),
		('send', 'ready',         0, '{}',       now() + interval '1 h'),
		('send', 'retry_waiting', 1, '{}',       now() + interval '1 s'),
		('send', 'succeeded',     0, '{}',       now() - interval '1 h'),
		('send', 'dead_letter',   5, '{}',       now() - interval '1 h'),
		('send', 'leased',        0, '{}',       now() - interval '1 h')`)
	q := open(t, pool, queue.Config{Name: "me"})

	for _, want := range []int{1, 2, 3} {
		jobs, err := q.Claim(t.Context(), []string{"send", "sing"}, 1)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		var payload struct{ N int }
		require.NoError(t, json.Unmarshal(jobs[0].Payload, &payload))
		require.Equal(t, want, payload.N)
		require.True(t, strings.HasPrefix(jobs[0].Owner, "me/"), jobs[0].Owner)
		require.Equal(t, 5, jobs[0].MaxAttempts)
		require.Equal(t, want == 1, jobs[0].Attempts == 2)
	}
	jobs, err := q.Claim(t.Context(), []string{"send", "sing"}, 1)
	require.NoError(t, err)
	require.Empty(t, jobs)
}

// One job that somebody looks at for update would stop the queue.
func TestClaimWaitsForNobody(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	first, second := enqueue(t, pool, 5), enqueue(t, pool, 5)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // it only locks
	fixture.Exec(t, tx, `select from job_queue where job_id = $1 for update`, first)

	require.Equal(t, second, claim(t, open(t, pool, queue.Config{})).ID)
}

// With a long queue each claim would read all of it.
func TestAnIndexServesTheClaim(t *testing.T) {
	t.Parallel()
	seen := &tracer{}
	pool := fixture.Queue(t)
	fixture.Exec(t, pool, `insert into job_queue (job_kind, state, scheduled_at)
		select 'send', case when i % 10 = 0 then 'ready' else 'succeeded' end, now() - make_interval(secs => i)
		from generate_series(1, 50000) i`)
	fixture.Exec(t, pool, `vacuum analyze job_queue`)
	traced := pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Tracer = seen })
	_, err := open(t, traced, queue.Config{}).Claim(t.Context(), []string{kind}, 10)
	require.NoError(t, err)

	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		plan := explain(t, pool, mode, seen)
		require.Contains(t, plan, "Index Scan using job_queue_scheduled_at_idx")
		require.Contains(t, plan, "Index Scan using job_queue_pkey")
		require.NotContains(t, plan, "Seq Scan")
		require.NotContains(t, plan, "Sort")
	}
}

func explain(t *testing.T, pool *pgxpool.Pool, mode string, statement *tracer) string {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	fixture.Exec(t, conn, `set plan_cache_mode = `+mode)
	rows, err := conn.Query(t.Context(), "explain "+statement.sql, statement.args...)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}

// tracer keeps the last statement.
type tracer struct {
	sql  string
	args []any
}

func (s *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.sql, s.args = data.SQL, data.Args
	return ctx
}

func (*tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A producer's transaction that is rolled back would leave a job about nothing.
func TestAJobIsThereWhenItsTransactionCommits(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	q := open(t, pool, queue.Config{})
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // committed below
	id, err := queue.Enqueue(t.Context(), tx, queue.NewJob{Kind: kind, Payload: map[string]int{"n": 1}})
	require.NoError(t, err)

	jobs, err := q.Claim(t.Context(), []string{kind}, 1)
	require.NoError(t, err)
	require.Empty(t, jobs)
	require.NoError(t, tx.Commit(t.Context()))
	job := claim(t, q)
	require.Equal(t, id, job.ID)
	require.JSONEq(t, `{"n": 1}`, string(job.Payload))
	require.Equal(t, 5, job.MaxAttempts)
}
