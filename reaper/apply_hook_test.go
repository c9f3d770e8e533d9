package reaper_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

type hook = func(ctx context.Context, tx pgx.Tx, result *reaper.ApplyResult) error

// An audit row stands if and only if the reap does.
func TestOnApplyCommitsWithTheApply(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `create table audit (job_id uuid, kind text, owner text, overdue interval)`)
	reapertest.Stale(t, pool, "retryable", 2, 0, 5)
	reapertest.Stale(t, pool, "exhausted", 1, 4, 5)
	r := reapertest.New(t, pool, reaper.Config{OnApply: func(ctx context.Context, tx pgx.Tx, result *reaper.ApplyResult) error {
		for _, a := range result.Actions {
			_, err := tx.Exec(ctx, `insert into audit values ($1, $2, $3, $4)`, a.JobID, a.JobKind, a.LeaseOwner, a.Overdue)
			if err != nil {
				return err
			}
		}
		return nil
	}})

	reapertest.Apply(t, r, 10)

	require.Equal(t, 3, reapertest.One[int](t, pool, `select count(*)::int from audit join job_queue using (job_id)
		where kind = job_kind and owner like 'worker-%' and overdue between '1s' and '1min'`))
}

// A hook that fails, in every way it can, must leave nothing behind, least of
// all a connection that the next user of the pool trips over.
func TestAnOnApplyThatFailsRollsBack(t *testing.T) {
	t.Parallel()
	errHook := errors.New("the outbox is full")

	tests := map[string]struct {
		hook hook
		want error
	}{
		"it returns an error": {func(context.Context, pgx.Tx, *reaper.ApplyResult) error { return errHook }, errHook},
		"it panics":           {func(context.Context, pgx.Tx, *reaper.ApplyResult) error { panic(errHook) }, errHook},
		"its statement fails": {func(ctx context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error {
			_, err := tx.Exec(ctx, `insert into job_dead_letter (job_id) values (null)`)
			return err
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := reapertest.OpenQueue(t)
			reapertest.Stale(t, admin, "kind", 2, 4, 5)
			pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) { c.MaxConns = 1 })
			calls := 0
			r := reapertest.New(t, pool, reaper.Config{
				OnApply: func(ctx context.Context, tx pgx.Tx, result *reaper.ApplyResult) error {
					calls++
					return test.hook(ctx, tx, result)
				},
			})

			result, err := r.Apply(t.Context(), reapertest.Actor, 10)

			require.Nil(t, result)
			require.Error(t, err)
			if test.want != nil {
				require.ErrorIs(t, err, test.want)
			}
			require.Equal(t, 1, calls)
			require.Equal(t, map[string]int{"leased": 2}, reapertest.States(t, pool)) // by the one connection
			require.Equal(t, 0, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter`))
		})
	}
}

// An audit that is written for nothing fills a table by the minute.
func TestOnApplyIsNotCalledWhenNothingChanged(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
	reapertest.Stale(t, pool, "check", 1, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{OnApply: func(context.Context, pgx.Tx, *reaper.ApplyResult) error {
		return errors.New("called")
	}})

	require.Equal(t, 1, reapertest.Apply(t, r, 10).FailedCount)
}

// Metrics by kind, and how late a job was, are what a dashboard is for.
func TestActionsCarryWhatMetricsNeed(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until) values
		('late', 'leased', 'worker-1', now() - interval '90 seconds'), ('ancient', 'leased', null, '-infinity')`)

	actions := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10).Actions

	require.Equal(t, "ancient", actions[0].JobKind)
	require.Empty(t, actions[0].LeaseOwner)
	require.Equal(t, time.Duration(1<<63-1), actions[0].Overdue)
	require.True(t, actions[0].LeaseUntil.Equal(reaper.NegativeInfinity()))
	require.Equal(t, "late", actions[1].JobKind)
	require.Equal(t, "worker-1", actions[1].LeaseOwner)
	require.GreaterOrEqual(t, actions[1].Overdue, 90*time.Second)
	require.Less(t, actions[1].Overdue, 90*time.Second+reapertest.Waiting)
}

// One record a pass that changed something keeps a log readable; a payload in it
// would be a leak.
func TestALogRecordForAnApplyThatChangedSomething(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	var log bytes.Buffer
	r := reapertest.New(t, pool, reaper.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})

	reapertest.Apply(t, r, 10)
	require.Empty(t, log.String())

	reapertest.Stale(t, pool, "kind", 2, 0, 5)
	reapertest.Exec(t, pool, `update job_queue set payload = '{"card": "4111"}'`)
	reapertest.Apply(t, r, 10)
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")))
	require.Contains(t, log.String(), `level=INFO msg="reaped stale leases" actor=test-reaper reset_count=2 dead_letter_count=0`)
	require.NotContains(t, log.String(), "4111")
}

// A hook that swallows its error has failed the transaction; the caller's must be
// usable again all the same.
func TestASwallowedErrorDoesNotSpoilTheCallersTransaction(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	tx := reapertest.Begin(t, pool)
	swallow := func(ctx context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error {
		_, _ = tx.Exec(ctx, `select from no_such_table`)
		return nil
	}

	for _, db := range []reaper.DB{tx, pool} {
		_, err := reapertest.New(t, db, reaper.Config{OnApply: swallow}).Apply(t.Context(), reapertest.Actor, 10)
		require.Error(t, err)
		require.NotErrorIs(t, err, reaper.ErrOutcomeUnknown)
	}
	require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, tx))
}

// A hook or a mover that ends the transaction itself: what was done may have been done,
// and neither "nothing has changed" nor a list of actions would be true.
func TestCodeThatEndsTheTransactionMakesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	tests := map[string]reaper.Config{
		"a hook that commits":        {OnApply: func(ctx context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error { return tx.Commit(ctx) }},
		"a hook that commits by SQL": {OnApply: sqlHook("commit")},
		"a hook that rolls back":     {OnApply: sqlHook("rollback")},
		"a mover that commits": {DeadLetter: deadletter.MoverFunc(
			func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
				receipts, err := deadletter.Table{}.Move(ctx, tx, batch)
				return receipts, errors.Join(err, tx.Commit(ctx))
			})},
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "kind", 1, 4, 5)

			_, err := reapertest.New(t, pool, cfg).Apply(t.Context(), reapertest.Actor, 10)

			require.ErrorIs(t, err, reaper.ErrOutcomeUnknown)
		})
	}
}
