package gates_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// patience bounds what tests wait for. Nothing takes this long unless it fails.
const patience = 20 * time.Second

func open() map[string]string {
	return map[string]string{substrate: "true", enabled: "true", dryRun: "false", gates.BackoffBaseSec: "10"}
}

// The operator closes a gate, sees the commit, and starts to repair the queue by
// hand. An apply that had read the gate before must not commit after that.
func TestTableMakesAChangeWaitForTheApplyThatHasRead(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		change string // @ is the gate's key
		undone bool   // the apply is rolled back
	}{
		"closed":                     {`update queue_config set value = 'false' where key = @`, false},
		"closed, apply undone":       {`update queue_config set value = 'false' where key = @`, true},
		"renamed":                    {`update queue_config set key = 'x' where key = @`, false},
		"deleted":                    {`delete from queue_config where key = @`, false},
		"truncated":                  {`truncate queue_config`, false},
		"dropped":                    {`drop table queue_config`, true},
		"replaced by another table":  {`alter table queue_config rename to old_config`, false},
		"written with an upsert":     {`insert into queue_config values (@, 'off') on conflict (key) do update set value = excluded.value`, false},
		"closed by a locking reader": {`select from queue_config where key = @ for update`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, open())
			apply := begin(t, pool)
			values, err := gates.Table{}.Read(t.Context(), apply, gates.Keys())
			require.NoError(t, err)
			require.Equal(t, gates.Values(open()), values)

			changed := start(t, pool, replaceKey(test.change, enabled))
			end(t, apply, test.undone)
			require.NoError(t, changed.wait(t))
		})
	}
}

// Each of the three gates is fenced, and the window and the base with them.
func TestTableFencesEveryKey(t *testing.T) {
	t.Parallel()

	for _, key := range gates.Keys() {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, open())
			set(t, pool, map[string]string{gates.WindowUntil: "infinity"})
			apply := begin(t, pool)
			_, err := gates.Table{}.Read(t.Context(), apply, gates.Keys())
			require.NoError(t, err)

			changed := start(t, pool, replaceKey(`update queue_config set value = 'x' where key = @`, key))
			end(t, apply, false)
			require.NoError(t, changed.wait(t))
		})
	}
}

// An operator's transaction is about to close a gate when an apply comes to read
// it. What the apply reads must be what the operator commits.
func TestTableWaitsForAChangeUnderWay(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		change, key string
		undone      bool
		reason      string
	}{
		"the first is closed":     {`update queue_config set value = 'no' where key = @`, substrate, false, substrate + "=false"},
		"the second is closed":    {`update queue_config set value = 'false' where key = @`, enabled, false, enabled + "=false"},
		"the third is closed":     {`update queue_config set value = 'true' where key = @`, dryRun, false, dryRun + "=true"},
		"the first is deleted":    {`delete from queue_config where key = @`, substrate, false, substrate + "=false"},
		"the third is deleted":    {`delete from queue_config where key = @`, dryRun, false, dryRun + "=true"},
		"the second is renamed":   {`update queue_config set key = 'x' where key = @`, enabled, false, enabled + "=false"},
		"all are truncated":       {`truncate queue_config`, substrate, false, substrate + "=false"},
		"a change that is undone": {`update queue_config set value = 'false' where key = @`, enabled, true, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, open())
			operator := begin(t, pool)
			_, err := operator.Exec(t.Context(), replaceKey(test.change, test.key))
			require.NoError(t, err)

			var values gates.Values
			reading := startFunc(t, pool, func(ctx context.Context, tx pgx.Tx) (err error) {
				values, err = gates.Table{}.Read(ctx, tx, gates.Keys())
				return err
			})
			end(t, operator, test.undone)
			require.NoError(t, reading.wait(t))
			reason, err := values.Refusal(time.Now())
			require.NoError(t, err)
			require.Equal(t, test.reason, reason)
		})
	}
}

// Reapers on many machines share the gates. If one had to wait for another's
// apply, they would work one at a time.
func TestTableLetsManyReadersIn(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	set(t, pool, open())

	for range 3 { // their transactions stay open together
		tx := begin(t, pool)
		_, err := tx.Exec(t.Context(), `set local lock_timeout = '5s'`)
		require.NoError(t, err)
		values, err := gates.Table{}.Read(t.Context(), tx, gates.Keys())
		require.NoError(t, err)
		require.Equal(t, gates.Values(open()), values)
	}
}

// running is a transaction that was seen to wait for a lock.
type running struct{ done chan error }

func (r running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		require.Fail(t, "it waits for ever")
		return nil
	}
}

// start runs a statement and returns when it waits for a lock.
func start(t *testing.T, pool *pgxpool.Pool, sql string) running {
	t.Helper()
	return startFunc(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql)
		return err
	})
}

// startFunc runs do in a transaction and returns when that waits for a lock.
func startFunc(t *testing.T, pool *pgxpool.Pool, do func(context.Context, pgx.Tx) error) running {
	t.Helper()
	tx := begin(t, pool)
	pid := tx.Conn().PgConn().PID()
	r := running{done: make(chan error, 1)}
	go func() {
		err := do(t.Context(), tx)
		if err == nil {
			err = tx.Commit(t.Context())
		}
		r.done <- err
	}()
	require.Eventually(t, func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(),
			`select exists (select from pg_locks where pid = $1 and not granted)`, pid).Scan(&waits)
		return len(r.done) > 0 || err == nil && waits
	}, patience, 5*time.Millisecond, "it neither waits for a lock nor ends")
	require.Empty(t, r.done, "it did not wait for a lock")
	return r
}

func end(t *testing.T, tx pgx.Tx, undo bool) {
	t.Helper()
	if undo {
		require.NoError(t, tx.Rollback(t.Context()))
		return
	}
	require.NoError(t, tx.Commit(t.Context()))
}
