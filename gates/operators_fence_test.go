package gates_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// changes has the changes of an operator that may have to wait for an apply.
var changes = map[string]struct {
	do     operation
	reason string // why an apply that had to wait for it is refused; "": it is not
}{
	"a window is opened":      {operation{"open", "", ""}, ""},
	"a window is closed":      {operation{"close", "", ""}, dryRun + "=true"},
	"a window's end is added": {operation{"set", gates.WindowUntil, "-infinity"}, gates.WindowUntil + "=-infinity"},
	"a gate is closed":        {operation{"set", enabled, "no"}, enabled + "=false"},
	"a gate is unset":         {operation{"unset", substrate, ""}, substrate + "=false"},
}

// The operator closes the window, sees that it is closed, and repairs the queue. An apply
// that had read the gates must have ended before that.
func TestAChangeWaitsForTheApplyThatHasRead(t *testing.T) {
	t.Parallel()

	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, open())
			apply := reapertest.Begin(t, pool)
			_, err := gates.Table{}.Read(t.Context(), apply, gates.Keys())
			require.NoError(t, err)

			changed := startFunc(t, pool, func(ctx context.Context, tx pgx.Tx) error { return change.do.run(ctx, tx) })
			end(t, apply, false)
			require.NoError(t, changed.wait(t))
		})
	}
}

// An apply reads the gates while a change is in progress. It must read the values that the
// operator commits, also of a new row, in each way in which pgx can run the query.
func TestAnApplyWaitsForAChangeUnderWay(t *testing.T) {
	t.Parallel()

	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			for mode, reaper := range reapertest.InEveryMode(t, pool) {
				reapertest.Exec(t, pool, `truncate queue_config`)
				set(t, pool, open())
				_, err := read(t.Context(), reaper, gates.Table{}) // the statement is prepared
				require.NoError(t, err)
				changing := reapertest.Begin(t, pool)
				require.NoError(t, change.do.run(t.Context(), changing))

				var values gates.Values
				reading := startFunc(t, reaper, func(ctx context.Context, tx pgx.Tx) (err error) {
					values, err = gates.Table{}.Read(ctx, tx, gates.Keys())
					return err
				})
				end(t, changing, false)
				require.NoError(t, reading.wait(t))
				reason, err := values.Refusal(time.Now())
				require.NoError(t, err)
				require.Equal(t, change.reason, reason, mode)
			}
		})
	}
}

// Many reapers lock the gates' rows one after the other. An operator must be able to
// change a gate, also if there is always an apply in progress.
func TestReapersThatTakeTurnsDoNotKeepAChangeWaiting(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	set(t, pool, open())
	reaper := reapertest.Begin(t, pool)
	_, err := gates.Table{}.Read(t.Context(), reaper, gates.Keys())
	require.NoError(t, err)
	closing := startFunc(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		return gates.Table{}.CloseWindow(ctx, tx, operator)
	})

	var values gates.Values
	next := startFunc(t, pool, func(ctx context.Context, tx pgx.Tx) (err error) {
		values, err = gates.Table{}.Read(ctx, tx, gates.Keys())
		return err
	})
	end(t, reaper, false)

	require.NoError(t, closing.wait(t))
	require.NoError(t, next.wait(t))
	require.Equal(t, "true", values[dryRun])
}

// Others read their settings from the same table, and a reaper that is refused reads its
// own. A change that waits must not make them wait too.
func TestAChangeLeavesPlainReadersAlone(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	set(t, pool, open())
	changing := reapertest.Begin(t, pool)
	require.NoError(t, gates.Table{}.CloseWindow(t.Context(), changing, operator))
	reading := reapertest.Begin(t, pool)
	reapertest.Exec(t, reading, `set local lock_timeout = '5s'`)

	values, err := gates.Table{}.ReadUnlocked(t.Context(), reading, gates.Keys())

	require.NoError(t, err)
	require.Equal(t, gates.Values(open()), values)
}

// An operator whose change times out has changed nothing, and makes nobody wait.
func TestAChangeThatIsGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	set(t, pool, open())
	apply := reapertest.Begin(t, pool)
	_, err := gates.Table{}.Read(t.Context(), apply, gates.Keys())
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- gates.Table{}.CloseWindow(ctx, pool, operator) }()
	require.Eventually(t, func() bool { return waits(t, pool) }, patience, 5*time.Millisecond)

	cancel(errors.New("given up"))

	require.ErrorIs(t, <-done, context.Canceled)
	require.Eventually(t, func() bool { return !waits(t, pool) }, patience, 5*time.Millisecond)
	end(t, apply, false)
	values, err := read(t.Context(), pool, gates.Table{})
	require.NoError(t, err)
	require.Equal(t, gates.Values(open()), values)
}

// waits reports whether a change waits for the applies in progress.
func waits(t *testing.T, pool *pgxpool.Pool) (waiting bool) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `select exists (select from pg_locks
		where not granted and database = (select oid from pg_database where datname = current_database()))`).Scan(&waiting)
	require.NoError(t, err)
	return waiting
}
