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

// Sent is a statement that was sent.
type Sent struct {
	SQL  string
	Args []any
}

// Cursor returns the cursor of a poll or a claim.
func (s Sent) Cursor() pgtype.Timestamptz {
	at := map[string]int{"reaper.poll": 1, "reaper.claim": 2}[s.Name()]
	cursor, _ := s.Args[at].(pgtype.Timestamptz)
	return cursor
}

// Readdressed returns the statement with the current addresses of its rows.
func (s Sent) Readdressed(t *testing.T, db Execer) Sent {
	t.Helper()
	indexes := map[string][2]int{ // the arguments with the ids and the addresses
		"reaper.reset": {2, 3}, "reaper.close": {2, 3}, "reaper.bump": {1, 2}, "deadletter.insert_checked": {1, 4},
	}
	at, ok := indexes[s.Name()]
	if !ok || s.Args[at[1]] == "{}" {
		return s
	}
	s.Args = slices.Clone(s.Args)
	s.Args[at[1]] = One[string](t, db, `select array_agg(q.ctid order by u.n)::text
		from unnest($1::text::uuid[]) with ordinality u(id, n) join job_queue q on q.job_id = u.id`, s.Args[at[0]])
	return s
}

// Name returns the name in the statement's first line, or "".
func (s Sent) Name() string {
	if found := firstLine.FindStringSubmatch(s.SQL); found != nil {
		return found[1]
	}
	return ""
}

// Recorder is a tracer that records the statements and counts the exchanges: each batch
// and each statement that is sent alone.
type Recorder struct {
	mu        sync.Mutex
	log       []Sent
	Exchanges int
}

// Keep records a statement.
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

// Count returns the number of exchanges.
func (r *Recorder) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Exchanges
}

// Statements returns the statements in the order in which they were sent.
func (r *Recorder) Statements() []Sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

// Named returns the statements with a name.
func (r *Recorder) Named(name string) []Sent {
	return slices.DeleteFunc(r.Statements(), func(s Sent) bool { return s.Name() != name })
}

// TraceQueryStart records a statement that is sent alone.
func (r *Recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.Keep(data.SQL, data.Args)
	r.exchanged()
	return ctx
}

// TraceQueryEnd does nothing.
func (r *Recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart counts an exchange.
func (r *Recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	r.exchanged()
	return ctx
}

// TraceBatchQuery records a statement of a batch.
func (r *Recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.Keep(data.SQL, data.Args)
}

// TraceBatchEnd does nothing.
func (r *Recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// Recording returns another pool on the database, and the Recorder of its statements.
func Recording(t *testing.T, pool *pgxpool.Pool) (*pgxpool.Pool, *Recorder) {
	t.Helper()
	recorder := &Recorder{}
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) {
		c.ConnConfig.Tracer = recorder
		c.ShouldPing = NoPing
	}), recorder
}

// NoPing keeps a pool from pinging connections that were idle for a second. On a slow
// machine the ping would be one more exchange.
func NoPing(context.Context, pgxpool.ShouldPingParams) bool { return false }

var firstLine = regexp.MustCompile(`^-- (\w+\.\w+)\n`)
