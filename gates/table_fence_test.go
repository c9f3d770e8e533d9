package gates_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// The operator closes a gate, sees the commit, and starts to repair the queue. An apply
// that had read the gate before must not commit after that.
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
			apply := reapertest.Begin(t, pool)
			values, err := gates.Table{}.Read(t.Context(), apply, gates.Keys())
			require.NoError(t, err)
			require.Equal(t, gates.Values(open()), values)

			changed := start(t, pool, replaceKey(test.change, enabled))
			end(t, apply, test.undone)
			require.NoError(t, changed.wait(t))
		})
	}
}

// Each of the three gates is fenced, and so are the window and the backoff base.
func TestTableFencesEveryKey(t *testing.T) {
	t.Parallel()

	for _, key := range gates.Keys() {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, open())
			set(t, pool, map[string]string{gates.WindowUntil: "infinity"})
			apply := reapertest.Begin(t, pool)
			_, err := gates.Table{}.Read(t.Context(), apply, gates.Keys())
			require.NoError(t, err)

			changed := start(t, pool, replaceKey(`update queue_config set value = 'x' where key = @`, key))
			end(t, apply, false)
			require.NoError(t, changed.wait(t))
		})
	}
}

// An operator's transaction is closing a gate when an apply reads it. The apply must read
// the value that the operator commits.
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
			operator := reapertest.Begin(t, pool)
			reapertest.Exec(t, operator, replaceKey(test.change, test.key))

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

// Reapers on many machines share the gates. If one waited for another's apply, they would
// not work concurrently.
func TestTableLetsManyReadersIn(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	set(t, pool, open())

	for range 3 { // their transactions stay open together
		tx := reapertest.Begin(t, pool)
		reapertest.Exec(t, tx, `set local lock_timeout = '5s'`)
		values, err := gates.Table{}.Read(t.Context(), tx, gates.Keys())
		require.NoError(t, err)
		require.Equal(t, gates.Values(open()), values)
	}
}
