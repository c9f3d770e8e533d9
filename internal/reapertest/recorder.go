package reapertest

import (
	"context"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Sent is a statement as it was sent.
type Sent struct {
	SQL  string
	Args []any
}

// Place is from where a look or a claim begins.
func (s Sent) Place() pgtype.Timestamptz {
	at := map[string]int{"reaper.poll": 1, "reaper.claim": 2}[s.Name()]
	place, _ := s.Args[at].(pgtype.Timestamptz)
	return place
}

// Readdressed is the statement with the addresses that the rows have now.
func (s Sent) Readdressed(t *testing.T, db Execer) Sent {
	t.Helper()
	places := map[string][2]int{ // of the ids and the addresses
		"reaper.reset": {2, 3}, "reaper.close": {2, 3}, "reaper.bump": {1, 2}, "deadletter.insert_checked": {1, 4},
	}
	at, ok := places[s.Name()]
	if !ok || s.Args[at[1]] == "{}" {
		return s
	}
	s.Args = slices.Clone(s.Args)
	s.Args[at[1]] = One[string](t, db, `select array_agg(q.ctid order by u.n)::text
		from unnest($1::text::uuid[]) with ordinality u(id, n) join job_queue q on q.job_id = u.id`, s.Args[at[0]])
	return s
}

// Name is what the statement's first line calls it; empty: it has no name.
func (s Sent) Name() string {
	if found := firstLine.FindStringSubmatch(s.SQL); found != nil {
		return found[1]
	}
	return ""
}

// Recorder is a tracer that keeps the statements and counts the exchanges.
type Recorder struct {
	mu        sync.Mutex
	log       []Sent
	Exchanges int
}

// Keep notes a statement.
func (r *Recorder) Keep(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, Sent{sql, args})
}

func (r *Recorder) exchanged() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Exchanges++
}

// Count is the number of exchanges.
func (r *Recorder) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Exchanges
}

// Statements are all that were sent, in their order.
func (r *Recorder) Statements() []Sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

// Named are those of one name.
func (r *Recorder) Named(name string) []Sent {
	return slices.DeleteFunc(r.Statements(), func(s Sent) bool { return s.Name() != name })
}

// TraceQueryStart notes a statement that is sent by itself.
func (r *Recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.Keep(data.SQL, data.Args)
	r.exchanged()
	return ctx
}

// TraceQueryEnd does nothing.
func (r *Recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart notes an exchange.
func (r *Recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	r.exchanged()
	return ctx
}

// TraceBatchQuery notes a statement of a batch.
func (r *Recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.Keep(data.SQL, data.Args)
}

// TraceBatchEnd does nothing.
func (r *Recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// Recording is a pool of one connection whose statements are noted.
func Recording(t *testing.T, pool *pgxpool.Pool) (*pgxpool.Pool, *Recorder) {
	t.Helper()
	recorder := &Recorder{}
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) {
		c.ConnConfig.Tracer = recorder
		c.ShouldPing = NoPing
	}), recorder
}

// NoPing keeps a pool from asking after connections that were idle for a second,
// which would be an exchange more on a slow machine.
func NoPing(context.Context, pgxpool.ShouldPingParams) bool { return false }

var firstLine = regexp.MustCompile(`^-- (\w+\.\w+)\n`)
