package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

var stormLasts = flag.Duration("storm", 16*time.Second,
	"how long TestStorm's storm lasts: go test ./internal/e2e -run TestStorm -timeout 3h -storm 2h")

// A year of what happens to a database, in seconds: crashes, restarts, ended
// backends, lost connections, read-only periods, locks that others hold, workers that
// die, renew at the last moment or come back late, movers that break for a while, and
// hooks that fail. Were anything of it handled wrongly, a job would
// be lost, run twice at once, lose a try that it never had, or die twice; or a
// caller would be told something else than what was committed.
func TestStorm(t *testing.T) {
	t.Parallel()
	server, admin := reapertest.OwnServer(t)
	reapertest.Exec(t, admin, reapertest.SQLLedger)
	reapertest.Exec(t, admin, `insert into queue_config (key, value) values ('queue.retry.backoff_base_sec', '0')`)
	s := &storm{server: server, memo: reapertest.CallLog{Actors: map[string]*reapertest.Reported{}}, seen: map[string]int{}}

	s.runWorkload(t, admin)
	s.drainRemaining(t, admin)

	s.seen["commits of unknown outcome that did happen"] = reapertest.RequireLedgerAgrees(t, admin, &s.memo)
	s.seen["jobs reset"] = reapertest.One[int](t, admin, `select count(*) from ledger_reap where action = 'reset_to_retry_waiting'`)
	s.seen["jobs moved"] = reapertest.One[int](t, admin, `select count(*) from ledger_reap where action = 'moved_to_dead_letter'`)
	s.requireAllFaultsSeen(t)
	reapertest.WaitForNoTransaction(t, admin)
}

// storm is what all hands share.
type storm struct {
	server *pgtest.Server
	memo   reapertest.CallLog

	mu     sync.Mutex
	seen   map[string]int // how often something happened
	faults []string
}

const workers = 16

// runWorkload runs the workers, the reapers and the faults, and returns when the storm is
// over.
func (s *storm) runWorkload(t *testing.T, admin *pgxpool.Pool) {
	t.Helper()
	p := reapertest.StartProxy(t, admin.Config(), func(message []byte) reapertest.Loss {
		if !reapertest.IsCommit(message) {
			return reapertest.Keep
		}
		return []reapertest.Loss{reapertest.LoseMessage, reapertest.LoseAnswer, reapertest.ForgeAnswer, reapertest.Keep, reapertest.Keep, reapertest.Keep, reapertest.Keep, reapertest.Keep}[rand.IntN(8)]
	})
	ctx, cancel := context.WithTimeout(t.Context(), *stormLasts+reapertest.Waiting)
	defer cancel()
	var group sync.WaitGroup
	var pools []*pgxpool.Pool
	open := func(change func(*pgxpool.Config)) *pgxpool.Pool {
		pools = append(pools, pgtest.Connect(t, admin, change))
		return pools[len(pools)-1]
	}
	for i := range workers {
		w := &worker{storm: s, name: fmt.Sprint("worker-", i), pool: open(func(c *pgxpool.Config) { c.MaxConns = 1 })}
		group.Go(func() { w.work(ctx) })
	}
	for name, kind := range replicas {
		cfg := reaper.Config{OnApply: writeReapsOrFail, LockTimeout: stormLockTimeout}
		if kind.breaks {
			cfg.DeadLetter = deadletter.MoverFunc(s.moveOrBreak)
		}
		pool := open(func(c *pgxpool.Config) {
			c.MaxConns = 2
			if kind.proxied {
				p.Reroute(c)
				cfg.Gates = gates.SourceFunc(slowSource)
			}
		})
		r := &replica{storm: s, Reaper: reapertest.New(t, pool, cfg), name: name, call: kind.call, limit: kind.limit, patience: kind.patience, breaks: kind.breaks}
		group.Go(func() { r.reap(ctx) })
	}
	s.injectFaults(ctx, t, p)
	cancel()
	group.Wait()
	for _, pool := range pools {
		require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, reapertest.Waiting, reapertest.Tick)
	}
}

// stormLockTimeout is shorter than others hold their locks.
const stormLockTimeout = 50 * time.Millisecond

// moveOrBreak is a mover that cannot move anything for a while, again and again.
func (s *storm) moveOrBreak(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
	if time.Now().UnixMilli()/500%2 == 0 {
		s.add("moves while the mover was broken", 1)
		return nil, fmt.Errorf("for a while: %w", deadletter.ErrUnavailable)
	}
	return deadletter.Table{}.Move(ctx, tx, batch)
}

// hold holds a lock that applies have to wait for, for longer than they do.
func (s *storm) hold(ctx context.Context, t *testing.T, lock string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.server.ConnString("postgres"))
	require.NoError(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // it has done its work
	if _, err := conn.Exec(ctx, "begin; set local lock_timeout = '1s'; "+lock); err == nil {
		pause(ctx, 2*stormLockTimeout+upTo(100*time.Millisecond))
		s.add("locks held", 1)
	}
}

// refuseWrites makes the database read-only for a while, for all sessions.
func (s *storm) refuseWrites(ctx context.Context, t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.server.ConnString("postgres"))
	require.NoError(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // it has done its work
	const others = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
	for _, sql := range []string{`alter system set default_transaction_read_only = on`, `select pg_reload_conf()`, others} {
		reapertest.Exec(t, conn, sql)
	}
	pause(ctx, upTo(300*time.Millisecond))
	for _, sql := range []string{`alter system reset default_transaction_read_only`, `select pg_reload_conf()`, others} {
		reapertest.Exec(t, conn, sql)
	}
	s.add("read-only periods", 1)
}

// injectFaults cuts connections, and ends servers. It goes on until everything has happened, on a slow machine
// for longer than it was told to, and leaves the server running.
func (s *storm) injectFaults(ctx context.Context, t *testing.T, p *reapertest.Proxy) {
	t.Helper()
	began := time.Now()
	for i := 1; time.Since(began) < *stormLasts || len(s.missing()) > 0; i++ {
		if !pause(ctx, 50*time.Millisecond+upTo(150*time.Millisecond)) {
			return
		}
		switch {
		case i%20 == 10:
			require.NoError(t, s.server.Kill())
			pause(ctx, upTo(300*time.Millisecond))
			require.NoError(t, s.server.Restart(t.Context()))
			s.add("kills", 1)
		case i%20 == 0:
			require.NoError(t, s.server.Restart(t.Context()))
			s.add("restarts", 1)
		case i%20 == 5:
			s.refuseWrites(ctx, t)
		case i%20 == 7:
			s.hold(ctx, t, "lock table job_queue in share row exclusive mode")
		case i%20 == 13:
			s.hold(ctx, t, "lock table job_queue in access exclusive mode")
		case i%20 == 17:
			s.hold(ctx, t, "select from queue_config for update")
		case i%2 == 0:
			s.add("backends ended", s.endBackends(ctx, t))
		default:
			s.add("connections cut", p.Cut())
		}
	}
}

// endBackends ends two backends, those that are committing before others.
func (s *storm) endBackends(ctx context.Context, t *testing.T) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.server.ConnString("postgres"))
	require.NoError(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // it has done its work
	var n int
	err = conn.QueryRow(ctx, `select count(pg_terminate_backend(pid)) from (
		select pid from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()
		order by state = 'active' and query = 'commit' desc, random()
		limit 2) s`).Scan(&n)
	if ctx.Err() == nil {
		require.NoError(t, err)
	}
	return n
}

// drainRemaining waits for the leases that are left, and reaps them.
func (s *storm) drainRemaining(t *testing.T, admin *pgxpool.Pool) {
	t.Helper()
	admin.Reset()
	ctx, cancel := context.WithTimeout(t.Context(), reapertest.Waiting)
	defer cancel()
	r := reapertest.New(t, admin, reaper.Config{OnApply: reapertest.WriteReaps})
	for i := 0; ; i++ {
		name := fmt.Sprint("after the storm/", i)
		result, err := r.Drain(ctx, name, 7)
		s.memo.Write(name, result.ResetCount+result.DeadLetterCount, err)
		require.NoError(t, err)
		if reapertest.States(t, admin)["leased"] == 0 {
			require.Zero(t, result.FailedCount)
			return
		}
		require.True(t, pause(ctx, 10*time.Millisecond), reapertest.States(t, admin))
	}
}

// missing is what has not happened yet, of what can be counted while it lasts.
func (s *storm) missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []string
	for _, what := range []string{
		"kills", "restarts", "backends ended", "connections cut",
		"claims", "deaths", "renewals", "renewals rejected", "finishes", "late finishes rejected",
		"jobs rejected", "locks held", "read-only periods", "moves while the mover was broken",
		"reapers' errors", "workers' errors", "hooks that failed",
	} {
		if s.seen[what] == 0 {
			missing = append(missing, what)
		}
	}
	if s.seen["commits of unknown outcome"] < fewUnknown { // among them are some of either outcome
		missing = append(missing, "commits of unknown outcome")
	}
	return missing
}

// fewUnknown is how many commits of unknown outcome a storm has at least.
const fewUnknown = 12

// requireAllFaultsSeen fails when something did not happen at all: then the rest proves
// little.
func (s *storm) requireAllFaultsSeen(t *testing.T) {
	t.Helper()
	require.Empty(t, s.faults)
	t.Log(s.seen)
	require.Empty(t, s.missing())
	for _, what := range []string{"jobs reset", "jobs moved", "commits of unknown outcome that did happen"} {
		require.Positive(t, s.seen[what], what)
	}
	require.Greater(t, s.seen["commits of unknown outcome"], s.seen["commits of unknown outcome that did happen"])
}

// add counts what happened.
func (s *storm) add(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[what] += n
}

// fault notes what the test shall fail for.
func (s *storm) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) < 20 {
		s.faults = append(s.faults, fmt.Sprintf(format, args...))
	}
}

// met counts an error, which must be one of the storm's making.
func (s *storm) met(what string, err error) {
	s.add(what, 1)
	if !isInjectedFault(err) {
		s.fault("%s: %v", what, err)
	}
}

// isInjectedFault tells the errors that a storm brings from those that it does not
// excuse.
func isInjectedFault(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return slices.Contains([]string{"08", "57"}, pgErr.Code[:2]) || // connection, operator intervention
			slices.Contains([]string{"25006", "55P03"}, pgErr.Code) // read-only, a lock that was held too long
	}
	if errors.Is(err, deadletter.ErrUnavailable) {
		return true
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
