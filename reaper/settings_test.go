package reaper_test

import (
	"context"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// The settings that the claim replaces, as a session has set them itself.
const sessionSettings = `set enable_sort = on; set jit = on; set plan_cache_mode = force_custom_plan`

const readSettings = `select current_setting('enable_sort') || ' ' || current_setting('jit') || ' '
	|| current_setting('plan_cache_mode')`

// The claim must not sort, and its plan is made once. A mover, a hook or a trigger of
// the user's that runs a report would be a thousand times slower under the same rules.
func TestCodeOfTheCallersRunsWithTheSessionsSettings(t *testing.T) {
	t.Parallel()

	seen := func(ctx context.Context, tx pgx.Tx, what string) error {
		_, err := tx.Exec(ctx, `insert into seen (what, settings) select $1, (`+readSettings+`)`, what)
		return err
	}
	source := gates.SourceFunc(func(ctx context.Context, tx pgx.Tx, keys []string) (gates.Values, error) {
		if err := seen(ctx, tx, "source"); err != nil {
			return nil, err
		}
		return reapertest.OpenGate.Read(ctx, tx, keys)
	})
	mover := deadletter.MoverFunc(func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
		if err := seen(ctx, tx, "mover"); err != nil {
			return nil, err
		}
		return deadletter.Table{}.Move(ctx, tx, batch)
	})
	hook := func(ctx context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error { return seen(ctx, tx, "hook") }
	const trigger = `create function note() returns trigger language plpgsql as
			$$ begin insert into seen select 'trigger', (` + readSettings + `); return new; end $$;
		create trigger note before update on job_queue for each row execute function note()`
	tests := map[string]struct {
		cfg   reaper.Config
		sql   string
		codes int // how many pieces of the caller's run
	}{
		"a source":              {reaper.Config{Gates: source}, `select 1`, 1},
		"a mover":               {reaper.Config{DeadLetter: mover}, `select 1`, 1},
		"a hook":                {reaper.Config{OnApply: hook}, `select 1`, 1},
		"a trigger":             {reaper.Config{}, trigger, 1},
		"a trigger, a function": {reaper.Config{DeadLetter: deadletter.Function{}}, trigger, 1},
		"all of it":             {reaper.Config{Gates: source, DeadLetter: mover, OnApply: hook}, trigger, 4},
	}
	for name, test := range tests {
		for with, poisoned := range map[string]int{"all at once": 0, "in groups": 12} {
			t.Run(name+", "+with, func(t *testing.T) {
				t.Parallel()
				admin := reapertest.WithOracle(t, reapertest.OpenQueue(t))
				reapertest.Exec(t, admin, `create table seen (what text, settings text)`)
				reapertest.Exec(t, admin, reapertest.RejectingSchemas["check"].SQL)
				reapertest.Exec(t, admin, test.sql)
				reapertest.Stale(t, admin, "good", 10, 0, 5)
				reapertest.Stale(t, admin, "good", 10, 4, 5)
				reapertest.Stale(t, admin, "check", poisoned, 0, 5)
				reapertest.Exec(t, admin, `update job_queue set lease_until = lease_until - interval '1 day' where job_kind = 'check'`)
				reapertest.Exec(t, admin, `truncate seen`)
				pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) {
					c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
						_, err := conn.Exec(ctx, sessionSettings)
						return err
					}
				})

				result := reapertest.Apply(t, reapertest.New(t, pool, test.cfg), 12) // in groups: a second claim follows the first

				require.Len(t, result.Actions, 12)
				require.Equal(t, test.codes, reapertest.One[int](t, admin, `select count(distinct what)::int from seen`))
				require.Equal(t, []string{"on on force_custom_plan"}, reapertest.One[[]string](t, admin,
					`select array_agg(distinct settings) from seen`))
				require.Equal(t, "on on force_custom_plan", reapertest.One[string](t, pool, readSettings))
			})
		}
	}
}
