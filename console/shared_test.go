package console_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// statements counts what a pool sends by the name in the first line.
type statements struct {
	mu   sync.Mutex
	seen map[string]int
	all  []string
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, _, _ := strings.Cut(data.SQL, "\n")
	s.seen[name]++
	s.all = append(s.all, data.SQL)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) count(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for name, times := range s.seen {
		if strings.HasPrefix(name, prefix) {
			n += times
		}
	}
	return n
}

// readBegins is what each transaction that reads sends once.
const readBegins = "-- console.bounds"

// traced is a pool on the same database whose statements are counted.
func traced(t testing.TB, pool *pgxpool.Pool) (*pgxpool.Pool, *statements) {
	t.Helper()
	s := &statements{seen: map[string]int{}}
	return pgtest.Connect(t, pool, func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = s }), s
}

// When something goes wrong, everybody opens the console, and the database has
// enough to do already.
func TestManyReadersAreOneRead(t *testing.T) {
	t.Parallel()
	pool, sent := traced(t, filled(t))
	cfg := shop(pool)
	cfg.Fresh = time.Hour
	h := handler(t, cfg)
	var readers sync.WaitGroup
	for i := range 50 {
		readers.Go(func() {
			got := get(t, h, []string{"/shop/overview", "/shop/jobs", "/shop/gates.json"}[i%3])
			if got.StatusCode != http.StatusOK {
				t.Error(got.body)
			}
			get(t, h, "/shop/letters?kind=charge_card")
		})
	}
	readers.Wait()
	require.Equal(t, 2, sent.count(readBegins), "one of the queue, one of the letters")
}

// Looking must be safe on a production database, also where the role could write.
func TestLookingUsesReadOnlyTransactions(t *testing.T) {
	t.Parallel()
	base := filled(t)
	look, sent := traced(t, base)
	cfg := shop(base)
	cfg.Databases[0].Look = look
	h := handler(t, cfg)
	for _, page := range append([]string{"/shop/letter?id=" + aLetter(t, cfg)}, lookPages...) {
		require.Equal(t, http.StatusOK, get(t, h, page).StatusCode, page)
	}
	sent.mu.Lock()
	defer sent.mu.Unlock()
	begun := 0
	for _, sql := range sent.all {
		if strings.HasPrefix(sql, "begin") {
			begun++
			require.Contains(t, sql, "read only")
		}
	}
	require.Positive(t, begun)
}

// A role that may only select, and no payload, is all that looking takes.
func TestLookingNeedsSelectWithoutPayloads(t *testing.T) {
	t.Parallel()
	base := filled(t)
	_, err := base.Exec(t.Context(), `do $$ begin
		execute format('create role %I', 'looker_' || current_database());
		execute format('grant select on queue_config to %I', 'looker_' || current_database());
		execute format('grant select (job_id, job_kind, state, attempts, max_attempts, scheduled_at, lease_owner,
			lease_until, last_error) on job_queue to %I', 'looker_' || current_database());
		execute format('grant select (dead_letter_id, job_id, job_kind, attempts, max_attempts, final_error, moved_by,
			moved_at, redriven_at, redriven_by) on job_dead_letter to %I', 'looker_' || current_database());
	end $$`)
	require.NoError(t, err)
	role := "looker_" + base.Config().ConnConfig.Database
	t.Cleanup(func() {
		_, err := base.Exec(context.WithoutCancel(t.Context()), `drop owned by "`+role+`"; drop role "`+role+`"`)
		require.NoError(t, err)
	})
	cfg := of(console.Database{Name: "shop", Look: pgtest.Connect(t, base, func(cfg *pgxpool.Config) {
		cfg.ConnConfig.RuntimeParams["role"] = role
	})})
	h := handler(t, cfg)
	own := cfg
	own.Databases = []console.Database{{Name: "shop", Look: base}}
	for _, page := range append([]string{"/shop/letter?id=" + aLetter(t, own)}, lookPages...) {
		got := get(t, h, page)
		require.Equal(t, http.StatusOK, got.StatusCode, "%s: %s", page, got.body)
	}
}

// switched is a pool whose connections can be cut.
func switched(t testing.TB, pool *pgxpool.Pool) (*pgxpool.Pool, *atomic.Bool) {
	t.Helper()
	var away atomic.Bool
	cut := errors.New("cut")
	return pgtest.Connect(t, pool, func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			if away.Load() {
				return nil, cut
			}
			return dial(ctx, network, address)
		}
		cfg.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return !away.Load(), nil }
	}), &away
}

// An old page that looks new sends people the wrong way. It says so, and since when,
// and comes back by itself.
func TestADatabaseThatIsAwayShowsSinceWhen(t *testing.T) {
	t.Parallel()
	pool, away := switched(t, filled(t))
	cfg := shop(pool)
	cfg.Fresh = time.Nanosecond
	h := handler(t, cfg)

	away.Store(true)
	got := get(t, h, "/shop/overview")
	require.Equal(t, http.StatusServiceUnavailable, got.StatusCode)
	require.Contains(t, got.body, "The database does not answer.")
	require.Contains(t, got.body, "There is nothing older to show.")
	require.Contains(t, got.body, "data-live", "the page tries again")
	require.NotContains(t, got.body, pool.Config().ConnConfig.User, "no account")

	away.Store(false)
	require.NotContains(t, get(t, h, "/shop/overview").body, "does not answer")

	away.Store(true)
	got = get(t, h, "/shop/overview")
	require.Equal(t, http.StatusOK, got.StatusCode)
	require.Contains(t, got.body, "The database does not answer.")
	require.Contains(t, got.body, "What is shown is")
	require.Contains(t, got.body, "send_invoice")
	require.Equal(t, http.StatusServiceUnavailable, get(t, h, "/shop/jobs.json").StatusCode, "a program gets no old data")
	require.Contains(t, get(t, h, "/shop/jobs.json").body, `"since"`)

	away.Store(false)
	require.NotContains(t, get(t, h, "/shop/overview").body, "does not answer")
}

// The reader who began a read may close the tab; the others still wait for it.
func TestAReaderWhoLeavesDoesNotSpoilTheRead(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(filled(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/shop/overview", http.NoBody)
	require.NoError(t, err)
	h.ServeHTTP(discard{http.Header{}}, r)
	got := get(t, h, "/shop/overview")
	require.Equal(t, http.StatusOK, got.StatusCode)
	require.NotContains(t, got.body, `role="alert"`)
}

// discard is a ResponseWriter for an answer that nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
