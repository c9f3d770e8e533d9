package deadletter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// wrapped is a service's own type around its pool.
type wrapped struct{ *pgxpool.Pool }

// newConnections returns databases that have sent nothing yet, of each kind and in
// each way in which pgx can run a query.
func newConnections(t *testing.T, pool *pgxpool.Pool) map[string]deadletter.DB {
	t.Helper()
	dbs := map[string]deadletter.DB{}
	for mode, pool := range reapertest.InEveryMode(t, pool) {
		conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		dbs[fmt.Sprint("a connection, ", mode)] = conn
		dbs[fmt.Sprint("a pool, ", mode)] = pool
		dbs[fmt.Sprint("a type around a pool, ", mode)] = wrapped{pgtest.Connect(t, pool, func(*pgxpool.Config) {})}
	}
	return dbs
}

// calls are the calls that meet the tables first.
var calls = map[string]func(ctx context.Context, db deadletter.DB, store deadletter.Store) error{
	"list": func(ctx context.Context, db deadletter.DB, store deadletter.Store) error {
		_, err := deadletter.List(ctx, db, store, deadletter.Filter{}, 10)
		return err
	},
	"redrive": func(ctx context.Context, db deadletter.DB, store deadletter.Store) error {
		_, err := deadletter.Redrive(ctx, db, store, operator, deadletter.Filter{}, 10)
		return err
	},
	"purge": func(ctx context.Context, db deadletter.DB, store deadletter.Store) error {
		_, err := deadletter.Purge(ctx, db, store, 0, deadletter.PurgeConfig{})
		return err
	},
	"purge all": func(ctx context.Context, db deadletter.DB, store deadletter.Store) error {
		_, err := deadletter.Purge(ctx, db, store, 0, deadletter.PurgeConfig{Unredriven: true})
		return err
	},
}

// A migration holds a table for minutes. The server waits for the table already
// where a statement is prepared, so that a connection that has prepared nothing yet
// would wait as long as the migration lasts. Nor is it any job's fault.
func TestATableUnderDDLIsTheErrorOfTheCall(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ before, locking, call string }{
		"list, the letters":                {"", "job_dead_letter in access exclusive mode", "list"},
		"redrive, the letters":             {"", "job_dead_letter in access exclusive mode", "redrive"},
		"redrive, the queue":               {"", "job_queue in access exclusive mode", "redrive"},
		"redrive, an index is made":        {"", "job_queue in share mode", "redrive"},
		"redrive, of the letters":          {"", "job_dead_letter in share mode", "redrive"},
		"rebuild, an index is made":        {"delete from job_queue", "job_queue in share mode", "redrive"},
		"purge, the letters":               {"", "job_dead_letter in access exclusive mode", "purge"},
		"purge of redriven ones":           {"update job_dead_letter set redriven_at = moved_at", "job_dead_letter in share mode", "purge"},
		"purge of all, the letters":        {"", "job_dead_letter in access exclusive mode", "purge all"},
		"purge of all, the queue":          {"", "job_queue in access exclusive mode", "purge all"},
		"purge of all, an index is made":   {"", "job_queue in share mode", "purge all"},
		"purge of all, one of the letters": {"", "job_dead_letter in share mode", "purge all"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := openLetters(t, "a", "b")
			reapertest.Exec(t, pool, test.before)
			migration := reapertest.Begin(t, pool)
			reapertest.Exec(t, migration, `lock table `+test.locking)

			store := deadletter.Store{LockTimeout: 20 * time.Millisecond}
			dbs := newConnections(t, pool)
			for _, state := range []string{"new", "known"} {
				for with, db := range dbs {
					reapertest.RequireLockTimeout(t, state+", "+with, func(ctx context.Context) error { return calls[test.call](ctx, db, store) })
				}
			}
			require.NoError(t, migration.Rollback(t.Context()))
			for with, db := range dbs {
				require.NoError(t, calls[test.call](t.Context(), db, store), with)
			}
		})
	}
}

// An index that is made on one partition is no job's fault either. Taken for one, each
// of ten thousand jobs would wait for the lock by itself.
func TestAPartitionUnderDDLIsTheErrorOfTheCall(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ before, partition, call string }{
		"redrive, where the jobs are":      {"", "jobs_dead", "redrive"},
		"redrive, where the jobs go":       {"", "jobs_back", "redrive"},
		"rebuild, where the jobs go":       {"delete from jobs", "jobs_back", "redrive"},
		"redrive, where the letters are":   {"", "letters_new", "redrive"},
		"purge, where the letters are":     {"update job_dead_letter set redriven_at = moved_at", "letters_new", "purge"},
		"purge of all, where the jobs are": {"", "jobs_dead", "purge all"},
	}
	for name, test := range tests {
		for _, mode := range []string{"share", "access exclusive"} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				pool, r, store := partitioned(t)
				_, err := r.Apply(t.Context(), actor, 100)
				require.NoError(t, err)
				reapertest.Exec(t, pool, test.before)
				migration := reapertest.Begin(t, pool)
				reapertest.Exec(t, migration, `lock table `+test.partition+` in `+mode+` mode`)
				store.LockTimeout = 20 * time.Millisecond

				reapertest.RequireLockTimeout(t, mode, func(ctx context.Context) error { return calls[test.call](ctx, pool, store) })
			})
		}
	}
}

// DDL on a partition that holds no job of the call must not stop it: live jobs are many,
// and an index is made on them now and then.
func TestAnotherPartitionUnderDDLHoldsUpNoCall(t *testing.T) {
	t.Parallel()
	pool, r, store := partitioned(t)
	_, err := r.Apply(t.Context(), actor, 100)
	require.NoError(t, err)
	migration := reapertest.Begin(t, pool)
	reapertest.Exec(t, migration, `lock table jobs_rest in share mode`)

	redriven, err := deadletter.Redrive(t.Context(), pool, store, operator, deadletter.Filter{}, 10)
	require.NoError(t, err)
	require.Equal(t, 10, redriven.RedrivenCount)
	reapertest.Exec(t, migration, `lock table jobs_back in share mode`)
	purged, err := deadletter.Purge(t.Context(), pool, store, 0, deadletter.PurgeConfig{Unredriven: true})
	require.NoError(t, err)
	require.Equal(t, 10, purged.JobCount)
}

// Two stores share a pool. What a connection has prepared for the first is not what
// the second needs.
func TestASecondStoreWaitsForTheLockTimeoutAtMost(t *testing.T) {
	t.Parallel()
	admin, _ := openLetters(t, "a", "b")
	reapertest.Exec(t, admin, `create table other_letters (like job_dead_letter including all);
insert into other_letters select * from job_dead_letter`)
	pool := pgtest.Connect(t, admin, func(config *pgxpool.Config) { config.MaxConns = 1 })
	redriveAll(t, pool, deadletter.Filter{})
	list(t, pool, deadletter.Filter{}, 10)
	purged, err := deadletter.Purge(t.Context(), pool, deadletter.Store{}, 0, deadletter.PurgeConfig{Unredriven: true})
	require.NoError(t, err)
	require.Equal(t, 2, purged.RedrivenCount)
	second := deadletter.Store{
		LockTimeout: 20 * time.Millisecond, Table: deadletter.Table{Name: pgx.Identifier{"other_letters"}},
	}
	migration := reapertest.Begin(t, admin)
	reapertest.Exec(t, migration, `lock table other_letters in access exclusive mode`)

	for name, call := range calls {
		reapertest.RequireLockTimeout(t, name, func(ctx context.Context) error { return call(ctx, pool, second) })
	}
}
