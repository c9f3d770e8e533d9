package reaper_test

import (
	"context"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// recorder is a tracer that keeps the statements and counts the exchanges.
type recorder struct {
	mu        sync.Mutex
	log       []sent
	exchanges int
}

// sent is a statement as it was sent.
type sent struct {
	sql  string
	args []any
}

var firstLine = regexp.MustCompile(`^-- (\w+\.\w+)\n`)

// name is what the statement's first line calls it; empty: it has no name.
func (s sent) name() string {
	if found := firstLine.FindStringSubmatch(s.sql); found != nil {
		return found[1]
	}
	return ""
}

func (r *recorder) keep(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, sent{sql, args})
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

// statements are all that were sent, in their order.
func (r *recorder) statements() []sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

// named are those of one name.
func (r *recorder) named(name string) []sent {
	return slices.DeleteFunc(r.statements(), func(s sent) bool { return s.name() != name })
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
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) {
		c.ConnConfig.Tracer = recorder
		c.ShouldPing = noPing
	}), recorder
}

// noPing keeps a pool from asking after connections that were idle for a second,
// which would be an exchange more on a slow machine.
func noPing(context.Context, pgxpool.ShouldPingParams) bool { return false }
