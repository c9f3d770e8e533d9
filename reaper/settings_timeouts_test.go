package reaper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// idleLimit is the idle_in_transaction_session_timeout of these tests.
const idleLimit = "1s"

// A database that ends whoever keeps a transaction open without work, or works for
// long, must not end the reaper's, for it does neither.
func TestTheServersPatienceIsEnough(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ settings map[string]string }{
		"transactions must not idle": {map[string]string{"idle_in_transaction_session_timeout": idleLimit}},
		"locks are not waited for":   {map[string]string{"lock_timeout": "1ms"}},
		"statements must be quick":   {map[string]string{"statement_timeout": "5s"}},
		"all of it": {map[string]string{
			"idle_in_transaction_session_timeout": idleLimit, "lock_timeout": "1ms", "statement_timeout": "5s",
		}},
	}
	for name, test := range tests {
		for with, mover := range reapertest.Movers {
			t.Run(name+", "+with, func(t *testing.T) {
				t.Parallel()
				reapertest.ReapInEveryWay(t, reapertest.WithSettings(t, reapertest.WithOracle(t, reapertest.OpenQueue(t)), test.settings), mover)
			})
		}
	}
}

// A user's hook or mover waits for something else while the transaction is open,
// and the server ends the session. The apply must say so, in spite of a hook that
// says that all is well, and leave no half of itself.
func TestAnIdlingHookLosesItsSessionAndChangesNothing(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ place string }{
		"OnApply, at the end":              {"hook"},
		"a mover that has not written yet": {"before"},
		"a mover that has written":         {"after"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := reapertest.OpenQueue(t)
			reapertest.Stale(t, admin, "retryable", 3, 0, 5)
			reapertest.Stale(t, admin, "exhausted", 2, 4, 5)
			before := reapertest.Contents(t, admin)
			pool := reapertest.WithSettings(t, admin, map[string]string{"idle_in_transaction_session_timeout": idleLimit})
			r := reapertest.New(t, pool, idlingAt(test.place, admin))

			result, err := r.Apply(t.Context(), reapertest.Actor, 10)
			require.Error(t, err)
			require.NotErrorIs(t, err, errStillThere)
			require.Nil(t, result)
			require.Equal(t, before, reapertest.Contents(t, admin))

			drained, err := r.Drain(t.Context(), reapertest.Actor, 10)
			require.Error(t, err)
			require.NotErrorIs(t, err, errStillThere)
			require.Equal(t, &reaper.DrainResult{}, drained)
			require.Equal(t, before, reapertest.Contents(t, admin))

			require.Len(t, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10).Actions, 5) // the pool is sound
		})
	}
}

// A hook that was slow once must not have ended the loop.
func TestRunGoesOnAfterAnIdlingHook(t *testing.T) {
	t.Parallel()
	admin := reapertest.OpenQueue(t)
	reapertest.Stale(t, admin, "kind", 3, 0, 5)
	pool := reapertest.WithSettings(t, admin, map[string]string{"idle_in_transaction_session_timeout": idleLimit})
	idling := idlingAt("hook", admin)
	calls := 0
	log := &reapertest.Logbook{}
	r := reapertest.New(t, pool, reaper.Config{
		Logger: log.Logger(),
		OnApply: func(ctx context.Context, tx pgx.Tx, result *reaper.ApplyResult) error {
			calls++
			if calls > 1 {
				return nil
			}
			return idling.OnApply(ctx, tx, result)
		},
	})

	stop := reapertest.Run(t, r, reapertest.Quick(nil))

	require.Eventually(t, func() bool { return log.Count("reaper recovered") == 1 }, reapertest.Waiting, reapertest.Tick)
	stop()
	require.Equal(t, map[string]int{"retry_waiting": 3}, reapertest.States(t, admin))
	require.Equal(t, 3, reapertest.One[int](t, admin, `select sum(attempts)::int from job_queue`))
}

// errStillThere is the error of a session that the server should have ended.
var errStillThere = errors.New("the session is still there")

// idlingAt is a configuration whose code idles at a place until the server has
// ended the session, and then says that all is well.
func idlingAt(place string, admin *pgxpool.Pool) reaper.Config {
	if place == "hook" {
		return reaper.Config{OnApply: func(ctx context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error {
			return idle(ctx, admin, tx)
		}}
	}
	return reaper.Config{DeadLetter: deadletter.MoverFunc(
		func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
			if place == "before" {
				if err := idle(ctx, admin, tx); err != nil {
					return nil, err
				}
			}
			receipts, err := deadletter.Table{}.Move(ctx, tx, batch)
			if err == nil && place == "after" {
				err = idle(ctx, admin, tx)
			}
			return receipts, err
		})}
}

// idle returns when the session of a transaction is gone.
func idle(ctx context.Context, admin *pgxpool.Pool, tx pgx.Tx) error {
	var pid uint32
	if err := tx.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
		return err
	}
	for end := time.Now().Add(reapertest.Waiting); time.Now().Before(end); {
		var there bool
		err := admin.QueryRow(ctx, `select exists (select from pg_stat_activity where pid = $1::int)`, pid).Scan(&there)
		if err != nil || !there {
			return err
		}
	}
	return errStillThere
}

// held are the locks of others that an apply has to wait for, since it is not a
// row of the queue that they hold. That of the dead letters holds up no reset, see
// TestResetsDoNotDependOnTheDeadLetters.
var held = map[string]string{
	"an operator edits a gate":  `update queue_config set value = value`,
	"a migration has the queue": `alter table job_queue add column tenant text`,
	"someone has the settings":  `lock table queue_config in exclusive mode`,
}

// With a time-out for locks or statements an apply that meets one gives up instead
// of standing in everyone's way. It must be told apart, and be harmless.
func TestATimeoutIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ setting, sqlState string }{
		"LockTimeout":       {"", "55P03"},
		"statement_timeout": {"statement_timeout", "57014"},
	}
	for name, test := range tests {
		for holder, lock := range held {
			t.Run(name+", "+holder, func(t *testing.T) {
				t.Parallel()
				admin := reapertest.OpenQueue(t)
				reapertest.Stale(t, admin, "retryable", 3, 0, 5)
				reapertest.Stale(t, admin, "exhausted", 2, 4, 5)
				before := reapertest.Contents(t, admin)
				pool, cfg := admin, reaper.Config{LockTimeout: 200 * time.Millisecond}
				if test.setting != "" {
					pool, cfg = reapertest.WithSettings(t, admin, map[string]string{test.setting: "200ms"}), reaper.Config{}
				}
				r := reapertest.New(t, pool, cfg)
				tx := reapertest.Begin(t, admin)
				reapertest.Exec(t, tx, lock)

				result, err := r.Apply(t.Context(), reapertest.Actor, 10)

				var pgErr *pgconn.PgError
				require.ErrorAs(t, err, &pgErr)
				require.Equal(t, test.sqlState, pgErr.Code)
				require.Nil(t, result)
				require.NoError(t, tx.Rollback(t.Context()))
				require.Equal(t, before, reapertest.Contents(t, admin))
			})
		}
	}
}
