package deadletter_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/oracle"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// counter counts the statements and batches that a connection sends.
type counter struct{ sent atomic.Int64 }

var (
	_ pgx.QueryTracer = (*counter)(nil)
	_ pgx.BatchTracer = (*counter)(nil)
)

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.sent.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (c *counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) { c.sent.Add(1) }
func (c *counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// A mover that sends a statement for each job takes minutes where the network is
// slow, with the rows locked all the while. The table's asks for its type first.
func TestMoversSendTheSameStatementsWhateverTheBatch(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		mover      deadletter.Mover
		statements int
	}{
		"a table":    {deadletter.Table{}, 2},
		"a function": {deadletter.Function{}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			execute(t, pool, oracle.Functions)
			var count counter
			counted := pgtest.Connect(t, pool, func(config *pgxpool.Config) { config.ConnConfig.Tracer = &count })

			for _, size := range []int{1, 10, 1000} {
				tx := begin(t, counted)
				batch := claim(t, tx, reference(), enqueue(t, pool, many(size)...))
				before := count.sent.Load()
				receipts, err := test.mover.Move(t.Context(), tx, batch)
				require.NoError(t, err)
				require.Len(t, receipts, size)
				require.EqualValues(t, test.statements, count.sent.Load()-before, "for %d jobs", size)
				require.NoError(t, tx.Rollback(t.Context()))
			}
		})
	}
}

// exchanges counts how often a connection sends something and waits.
type exchanges struct{ n atomic.Int64 }

var (
	_ pgx.QueryTracer = (*exchanges)(nil)
	_ pgx.BatchTracer = (*exchanges)(nil)
)

func (e *exchanges) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	e.n.Add(1)
	return ctx
}

func (e *exchanges) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (e *exchanges) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	e.n.Add(1)
	return ctx
}

func (e *exchanges) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (e *exchanges) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// recorder keeps the statements that a connection sends.
type recorder struct {
	exchanges

	mu         sync.Mutex
	statements map[string][]any
}

func (r *recorder) keep(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.statements == nil {
		r.statements = map[string][]any{}
	}
	r.statements[sql] = args
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.keep(data.SQL, data.Args)
	return ctx
}

func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.keep(data.SQL, data.Args)
}
