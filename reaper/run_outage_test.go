package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A lock or a failure that no worker meets is taken for an outage, and the loop waits for
// workers to renew again and again, while dead workers' jobs lie idle.
func TestWhatNoWorkerMeetsIsNoOutage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		setUp func(t *testing.T, pool *pgxpool.Pool)
		cfg   reaper.Config
	}{
		"an operator's open transaction on a gate": {setUp: func(t *testing.T, pool *pgxpool.Pool) {
			t.Helper()
			reapertest.Stale(t, pool, "reset", 1, 0, 5)
			reapertest.Exec(t, reapertest.Begin(t, pool), `update queue_config set updated_at = now()`)
		}},
		"a lock on a table of the hook": {setUp: func(t *testing.T, pool *pgxpool.Pool) {
			t.Helper()
			reapertest.Stale(t, pool, "reset", 1, 0, 5)
			reapertest.Exec(t, pool, `create table audit (n int)`)
			reapertest.Exec(t, reapertest.Begin(t, pool), `lock table audit`)
		}, cfg: reaper.Config{OnApply: sqlHook(`insert into audit values (1)`)}},
		"another database of a mover that is full": {
			cfg: reaper.Config{DeadLetter: failingMover("53100", nil)}},
		"one that is read-only": {
			cfg: reaper.Config{DeadLetter: failingMover("25006", deadletter.ErrUnavailable)}},
		"dead letters on another server that is away": {setUp: func(t *testing.T, pool *pgxpool.Pool) {
			t.Helper()
			foreignLetters(t, pool)
			reapertest.Exec(t, pool, `alter server self options (set port '1')`)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			if test.setUp != nil {
				test.setUp(t, pool)
			}
			reapertest.Stale(t, pool, "move", 1, 4, 5)
			log := &reapertest.Logbook{}
			test.cfg.Logger, test.cfg.LockTimeout = log.Logger(), 20*time.Millisecond
			passes := passesOf(t, reapertest.New(t, pool, test.cfg))

			for range 4 {
				<-passes
			}
			require.Zero(t, log.Count(reapertest.Renewing))
			require.Zero(t, log.Count("database unreachable"))
		})
	}
}

// The server of the dead letters has become read-only, and no job is reset any more.
func TestResetsDoNotDependOnAnotherServersLetters(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"read-only": `alter server self options (add options '-c default_transaction_read_only=on')`,
		"away":      `alter server self options (set port '1')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			foreignLetters(t, pool)
			reapertest.Exec(t, pool, sql)
			reapertest.Stale(t, pool, "reset", 2, 0, 5)
			reapertest.Stale(t, pool, "move", 2, 4, 5)

			result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10)

			require.Equal(t, 2, result.ResetCount)
			require.Equal(t, 2, result.FailedCount)
		})
	}
}

// foreignLetters makes the dead-letter table one of another server, which is this one.
func foreignLetters(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	c := pool.Config().ConnConfig
	reapertest.Exec(t, pool, fmt.Sprintf(`create extension postgres_fdw;
		create server self foreign data wrapper postgres_fdw options (host '%s', port '%d', dbname '%s');
		create user mapping for current_user server self options (user '%s', password_required 'false')`,
		c.Host, c.Port, c.Database, c.User))
	reapertest.Exec(t, pool, `alter table job_dead_letter rename to stored;
		create foreign table job_dead_letter (dead_letter_id uuid default gen_random_uuid(), job_id uuid, job_kind text,
			attempts int, max_attempts int, final_error text, moved_by text, moved_at timestamptz default now(), job jsonb,
			redriven_at timestamptz, redriven_by text) server self options (table_name 'stored')`)
}

// failingMover fails with an SQLSTATE of another database.
func failingMover(sqlState string, kind error) deadletter.Mover {
	cause := errors.Join(kind, &pgconn.PgError{Code: sqlState, SeverityUnlocalized: "ERROR"})
	return deadletter.MoverFunc(func(context.Context, pgx.Tx, deadletter.Batch) ([]deadletter.Receipt, error) {
		return nil, cause
	})
}

// sqlHook is a hook that runs SQL.
func sqlHook(sql string) func(context.Context, pgx.Tx, *reaper.ApplyResult) error {
	return func(ctx context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error {
		_, err := tx.Exec(ctx, sql)
		return err
	}
}

// An index is built on the queue: polls and claims work, and renewals do not. Jobs that
// live are taken for lost ones after it, unless the loop waits for workers to renew.
func TestALockOnTheQueueIsAnOutageForMovesToo(t *testing.T) {
	t.Parallel()
	for name, mover := range map[string]deadletter.Mover{"a table": deadletter.Table{}, "in place": deadletter.InPlace{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "move", 2, 4, 5)
			ddl := reapertest.Begin(t, pool)
			reapertest.Exec(t, ddl, `lock table job_queue in share mode`)
			log := &reapertest.Logbook{}
			passes := passesOf(t, reapertest.New(t, pool, reaper.Config{
				Logger: log.Logger(), LockTimeout: 20 * time.Millisecond, DeadLetter: mover,
			}))

			var failed *pgconn.PgError
			require.ErrorAs(t, (<-passes).Err, &failed)
			require.Equal(t, "55P03", failed.Code)
			require.NoError(t, ddl.Rollback(t.Context()))
			require.Eventually(t, func() bool { return reapertest.States(t, pool)["dead_letter"] == 2 }, reapertest.Waiting, reapertest.Tick)
			require.Equal(t, 1, log.Count(reapertest.Renewing))
		})
	}
}

// The connection breaks while a hook or a source of the service's own uses it: that is an
// outage, whoever's code was at work.
func TestAConnectionThatBreaksInCodeOfTheCallersIsAnOutage(t *testing.T) {
	t.Parallel()
	kill := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select pg_terminate_backend(pg_backend_pid())`)
		return err
	}
	breaks := func(ctx context.Context, tx pgx.Tx) error {
		_ = kill(ctx, tx)
		_, err := tx.Exec(ctx, `select 1`)
		return err
	}
	tests := map[string]reaper.Config{
		"a hook": {OnApply: func(ctx context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error { return breaks(ctx, tx) }},
		"a source": {Gates: gates.SourceFunc(func(ctx context.Context, tx pgx.Tx, _ []string) (gates.Values, error) {
			return nil, breaks(ctx, tx)
		})},
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "reset", 1, 0, 5)
			log := &reapertest.Logbook{}
			cfg.Logger = log.Logger()
			passes := passesOf(t, reapertest.New(t, pool, cfg))

			require.Error(t, (<-passes).Err)
			require.Eventually(t, func() bool { return log.Count("database unreachable") == 1 }, reapertest.Waiting, reapertest.Tick)
		})
	}
}
