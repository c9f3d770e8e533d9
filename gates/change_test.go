package gates_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// An operator has only the documented grants. If these are too few, the reaper cannot be
// stopped.
func TestChangesNeedWhatTheirCommentsSay(t *testing.T) {
	t.Parallel()

	changes := map[string]struct {
		do    operation
		needs []string
	}{
		"OpenWindow":  {operation{"open", "", ""}, []string{"select", "insert", "update"}},
		"CloseWindow": {operation{"close", "", ""}, []string{"select", "insert", "update", "delete"}},
		"Set":         {operation{"set", enabled, "true"}, []string{"select", "insert", "update"}},
		"Unset":       {operation{"unset", dryRun, ""}, []string{"select", "update", "delete"}},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, open())
			with := func(grants []string) error {
				tx := as(t, pool, strings.Join(grants, ", "))
				defer end(t, tx, true)
				return change.do.run(t.Context(), tx)
			}
			require.NoError(t, with(change.needs))
			for i, missing := range change.needs {
				var pgErr *pgconn.PgError
				require.ErrorAs(t, with(slices.Delete(slices.Clone(change.needs), i, i+1)), &pgErr, missing)
				require.Equal(t, "42501", pgErr.Code, missing)
			}
		})
	}
}

// A transaction may be old when it opens a window, and a change may have waited for long.
// The window must still last for the given duration.
func TestOpenWindowCountsFromTheChange(t *testing.T) {
	t.Parallel()
	tx := reapertest.Begin(t, pgtest.New(t))
	late := reapertest.One[time.Time](t, tx, `select clock_timestamp()`)

	until, err := gates.Table{}.OpenWindow(t.Context(), tx, operator, time.Hour)

	require.NoError(t, err)
	require.False(t, until.Before(late.Add(time.Hour)), "its now() is earlier than that")
}

// A change in the caller's transaction is rolled back with it. An error in the change must
// not abort the caller's transaction.
func TestAChangeInTheCallersTransactionIsASavepoint(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	settings := gates.Table{}
	tx := reapertest.Begin(t, pool)
	require.NoError(t, settings.Set(t.Context(), tx, operator, enabled, "true"))
	reapertest.Exec(t, tx, `alter table queue_config alter column value type boolean using value::boolean`)

	_, err := settings.OpenWindow(t.Context(), tx, operator, time.Hour)
	require.ErrorIs(t, err, gates.ErrColumn)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, settings.CloseWindow(ended, tx, operator), context.Canceled)

	values, err := gates.Table{}.ReadUnlocked(t.Context(), tx, gates.Keys())
	require.NoError(t, err)
	require.Equal(t, gates.Values{enabled: "true"}, values)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Empty(t, rows(t, pool, "queue_config"))
}

// A change whose context ends must be complete or absent: it returns an error and the
// caller's transaction does not have it, or it returns none and the transaction has it.
func TestAContextThatEndsLeavesNoChangeBehind(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		end     string // the statement with which the context ends
		changed bool
	}{
		"when applies are held off":    {"-- gates.lock", false},
		"when all is written":          {"-- gates.write", false},
		"when the savepoint is closed": {"release savepoint", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			pool := pgtest.Connect(t, pgtest.New(t), func(config *pgxpool.Config) {
				config.ConnConfig.Tracer = &ending{sql: test.end, cancel: cancel}
			})
			tx := reapertest.Begin(t, pool)

			err := gates.Table{}.Set(ctx, tx, operator, enabled, "true")

			require.Error(t, ctx.Err())
			if test.changed {
				require.NoError(t, err)
				require.NoError(t, tx.Commit(t.Context()))
				require.Contains(t, rows(t, pool, "queue_config"), enabled)
				return
			}
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, tx.Commit(t.Context()))
			require.Empty(t, rows(t, pool, "queue_config"))
		})
	}
}

// ending is a tracer that ends a context when a query with a statement begins, or when a
// batch with it ends.
type ending struct {
	sql    string
	cancel func()
	seen   bool // in the batch under way
}

func (e *ending) is(sql string) bool { return strings.HasPrefix(sql, e.sql) }

func (e *ending) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if e.is(data.SQL) {
		e.cancel()
	}
	return ctx
}

func (*ending) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*ending) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (e *ending) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	e.seen = e.seen || e.is(data.SQL)
}

func (e *ending) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {
	if e.seen {
		e.cancel()
	}
}
