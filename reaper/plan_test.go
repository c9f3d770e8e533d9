package reaper_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// recorder is a tracer that keeps the statements and counts the exchanges.
type recorder struct {
	mu         sync.Mutex
	statements map[string][]any
	exchanges  int
}

func (r *recorder) keep(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.statements == nil {
		r.statements = map[string][]any{}
	}
	r.statements[sql] = args
}

func (r *recorder) exchanged() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges++
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exchanges
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.keep(data.SQL, data.Args)
	r.exchanged()
	return ctx
}

func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	r.exchanged()
	return ctx
}

func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.keep(data.SQL, data.Args)
}

func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func recording(t *testing.T, pool *pgxpool.Pool) (*pgxpool.Pool, *recorder) {
	t.Helper()
	recorder := &recorder{}
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Tracer = recorder }), recorder
}

// A statement that reads the whole queue is unnoticed in a test's ten rows and
// brings the database down at ten million.
func TestEveryStatementUsesAnIndex(t *testing.T) {
	t.Parallel()
	pool := withOracle(t, openQueue(t))
	exec(t, pool, `insert into job_queue (job_kind, state, lease_until, payload)
		select 'kind', (array['ready', 'succeeded', 'leased', 'retry_waiting'])[1 + i % 4], now() + interval '1 hour',
			jsonb_build_object('n', repeat('x', 100))
		from generate_series(1, 200000) i`)
	stale(t, pool, "retryable", 50, 0, 5)
	stale(t, pool, "exhausted", 50, 4, 5)
	exec(t, pool, `analyze`)
	traced, recorder := recording(t, pool)
	for _, mover := range []deadletter.Mover{deadletter.Table{}, deadletter.Function{}} {
		r := newReaper(t, traced, reaper.Config{DeadLetter: mover})
		_, err := r.DryRun(t.Context(), 20)
		require.NoError(t, err)
		require.Len(t, apply(t, r, 20).Actions, 20)
	}

	named := 0
	for sql, args := range recorder.statements {
		if !strings.HasPrefix(sql, "-- ") || strings.HasPrefix(sql, "-- gates.") {
			continue
		}
		named++
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan := explain(t, pool, mode, sql, args)
			require.NotRegexp(t, `Seq Scan on job_queue q\b`, plan, sql)
			if strings.Contains(plan, "job_queue q") {
				require.Regexp(t, `Index.* Scan (using|on) job_queue`, plan, sql)
			}
		}
	}
	require.Equal(t, 9, named)
}

func explain(t *testing.T, pool *pgxpool.Pool, mode, sql string, args []any) string {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	exec(t, conn, `set plan_cache_mode = `+mode)
	rows, err := conn.Query(t.Context(), "explain "+sql, args...)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}

// Over a slow link a reaper that asks once a row takes minutes for a batch.
func TestTheNumberOfRoundTripsIsConstant(t *testing.T) {
	t.Parallel()
	pool := withOracle(t, openQueue(t))
	traced, recorder := recording(t, pool)

	for _, mover := range []deadletter.Mover{deadletter.Table{}, deadletter.Function{}} {
		r := newReaper(t, traced, reaper.Config{DeadLetter: mover})
		exchanges := func(jobs int) int {
			exec(t, pool, `truncate job_queue, job_dead_letter`)
			stale(t, pool, "retryable", jobs, 0, 5)
			stale(t, pool, "exhausted", jobs, 4, 5)
			recorder.exchanges = 0
			require.Len(t, apply(t, r, 10000).Actions, 2*jobs)
			return recorder.exchanges
		}
		require.Equal(t, exchanges(1), exchanges(2000))
		require.LessOrEqual(t, exchanges(1), 3)
	}
}
