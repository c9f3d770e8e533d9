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

// setWindow writes a window's end that is an SQL expression.
func setWindow(t testing.TB, db reapertest.Execer, until string) {
	t.Helper()
	reapertest.Exec(t, db, `insert into queue_config (key, value) values ('queue.lease.reaper_window_until', `+until+`)
		on conflict (key) do update set value = excluded.value`)
}

// readTable is a source of the caller's that reads the table.
func readTable(ctx context.Context, tx pgx.Tx, keys []string) (gates.Values, error) {
	return gates.Table{}.Read(ctx, tx, keys)
}

// embedding is a source of the caller's that has the methods of one of the library's.
type embedding struct{ gates.Table }

// sources are the kinds of sources that read the settings table.
var sources = map[string]gates.Source{
	"the table":          gates.Table{},
	"a pointer to it":    &gates.Table{},
	"a function":         gates.SourceFunc(readTable),
	"one with it inside": embedding{},
}

// An operator opens the third gate for an hour and forgets it. When the hour is
// over by the database's clock, nothing may be written, and the reason must be
// what stands in the table, so that the operator finds it.
func TestApplyRefusesWhenTheWindowHasPassed(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		until   string // SQL
		refused bool
	}{
		"a second ago":      {`(now() - interval '1 second')::text`, true},
		"a second ago, RFC": {`to_char(now() at time zone 'UTC' - interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`, true},
		"never":             {`'-infinity'`, true},
		"a long time ago":   {`'0001-01-01 00:00:00+00'`, true},
		"in an hour":        {`(now() + interval '1 hour')::text`, false},
		"for ever":          {`'infinity'`, false},
		"with space around": {`' ' || (now() - interval '1 day')::text || ' '`, true},
	}
	for name, test := range tests {
		for kind, source := range sources {
			t.Run(name+", by "+kind, func(t *testing.T) {
				t.Parallel()
				pool := reapertest.OpenQueue(t)
				reapertest.Stale(t, pool, "kind", 3, 0, 5)
				setWindow(t, pool, test.until)
				r := reapertest.New(t, pool, reaper.Config{Gates: source})
				if !test.refused {
					require.Len(t, reapertest.Apply(t, r, 10).Actions, 3)
					return
				}
				want := "queue.lease.reaper_window_until=" + reapertest.One[string](t, pool,
					`select value from queue_config where key = 'queue.lease.reaper_window_until'`)
				require.Equal(t, want, refuse(t, r)) // this one claims, and lets go
				before := reapertest.Fingerprint(t, pool)
				require.Equal(t, want, refuse(t, r)) // this one only asks
				require.Equal(t, before, reapertest.Fingerprint(t, pool))
				require.Equal(t, map[string]int{"leased": 3}, reapertest.States(t, pool))

				reapertest.Exec(t, pool, `delete from queue_config where key = 'queue.lease.reaper_window_until'`)
				require.Len(t, reapertest.Apply(t, r, 10).Actions, 3, "unset, it bounds nothing")
			})
		}
	}
}

// refuse applies, is refused, and returns why.
func refuse(t testing.TB, r *reaper.Reaper) string {
	t.Helper()
	result, err := r.Apply(t.Context(), reapertest.Actor, 10)
	require.NoError(t, err)
	require.JSONEq(t, `{"reason":`+reapertest.JSON(t, result.Reason)+`,"refused":true}`, reapertest.JSON(t, result))
	return result.Reason
}

// An end that nobody can read must stop the reaper and be named, or it would
// bound nothing; and it must not hide a gate that is closed.
func TestApplyNamesAWindowThatIsNone(t *testing.T) {
	t.Parallel()

	for _, value := range []string{"", "soon", "tomorrow", "2999-01-01", "2999-01-01 00:00:00", "null"} {
		for kind, source := range sources {
			t.Run(value+", by "+kind, func(t *testing.T) {
				t.Parallel()
				pool := reapertest.OpenQueue(t)
				reapertest.Stale(t, pool, "kind", 1, 0, 5)
				setWindow(t, pool, "'"+value+"'")
				r := reapertest.New(t, pool, reaper.Config{Gates: source})

				_, err := r.Apply(t.Context(), reapertest.Actor, 10)

				var bad *gates.ValueError
				require.ErrorAs(t, err, &bad)
				require.Equal(t, gates.WindowUntil, bad.Key)
				require.Equal(t, value, bad.Value)
				require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))
				reapertest.Exec(t, pool, `update queue_config set value = 'true' where key = 'queue.lease.reaper_dry_run_only'`)
				require.Equal(t, "queue.lease.reaper_dry_run_only=true", refuse(t, r))
			})
		}
	}
}

// A big batch is under way when the window ends. It was begun in time, and is
// finished; the next one is not begun.
func TestAnApplyThatBeganInTimeIsFinished(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "dying", 1, 4, 5)
	setWindow(t, pool, `(clock_timestamp() + interval '1 second')::text`)
	slow := deadletter.MoverFunc(func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
		require.Eventually(t, func() bool {
			return reapertest.One[bool](t, pool, `select value::timestamptz < now() from queue_config
				where key = 'queue.lease.reaper_window_until'`)
		}, reapertest.Waiting, reapertest.Tick)
		return deadletter.Table{}.Move(ctx, tx, batch)
	})
	r := reapertest.New(t, pool, reaper.Config{DeadLetter: slow})

	require.Equal(t, 1, reapertest.Apply(t, r, 10).DeadLetterCount)

	reapertest.Stale(t, pool, "later", 1, 0, 5)
	require.Contains(t, refuse(t, r), "queue.lease.reaper_window_until=")
}

// In a transaction of the caller's the clock stands still, and with it the
// window: all applies in it are of one moment, whatever the time is meanwhile.
func TestTheTransactionsClockJudgesTheWindow(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ source gates.Source }{
		"the table": {gates.Table{}}, "a function": {gates.SourceFunc(readTable)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			tx := reapertest.Begin(t, pool)
			reapertest.Stale(t, tx, "kind", 1, 0, 5)
			setWindow(t, tx, `now()::text`)
			require.True(t, reapertest.One[bool](t, tx, `select value::timestamptz < clock_timestamp() from queue_config
				where key = 'queue.lease.reaper_window_until'`))
			r := reapertest.New(t, tx, reaper.Config{Gates: test.source})

			require.Len(t, reapertest.Apply(t, r, 10).Actions, 1)
			setWindow(t, tx, `(now() - interval '1 microsecond')::text`)
			require.Contains(t, refuse(t, r), gates.WindowUntil)
		})
	}
}

// Sources that do not read the table are bound by what they say alone.
func TestOtherSourcesAndTheirWindows(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 5, 0, 5)
	setWindow(t, pool, `'-infinity'`)

	require.Len(t, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{Gates: reapertest.OpenGate}), 1).Actions, 1)

	for _, until := range []string{"-infinity", "infinity"} {
		for key, value := range map[string]string{
			gates.SubstrateEnabled: "true", gates.ReaperEnabled: "true", gates.DryRunOnly: "false", gates.WindowUntil: until,
		} {
			reapertest.Exec(t, pool, `do $$ begin execute format('alter database %I set `+key+` = %L', current_database(), '`+value+`'); end $$`)
		}
		later := pgtest.Connect(t, pool, func(*pgxpool.Config) {}) // sessions that know of it
		r := reapertest.New(t, later, reaper.Config{Gates: gates.CurrentSetting{}})
		if until == "-infinity" {
			require.Equal(t, "queue.lease.reaper_window_until=-infinity", refuse(t, r))
			continue
		}
		require.Len(t, reapertest.Apply(t, r, 1).Actions, 1)
	}
}

// A window is for a night, and the nights before and after must not pay for it.
// A source of the callers costs one for itself.
func TestAWindowCostsNoExchange(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		source                gates.Source
		unset, opened, passed int
	}{
		"the table":  {gates.Table{}, 2, 2, 2},
		"a function": {gates.SourceFunc(readTable), 4, 4, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := reapertest.OpenQueue(t)
			pool, recorder := reapertest.Recording(t, admin)
			r := reapertest.New(t, pool, reaper.Config{Gates: test.source})
			exchanges := func(do func()) int {
				do() // its statements are prepared now
				before := recorder.Count()
				do()
				return recorder.Count() - before
			}
			idle := func() { require.Empty(t, reapertest.Apply(t, r, 10).Actions) }

			require.Equal(t, test.unset, exchanges(idle))
			setWindow(t, admin, `'infinity'`)
			require.Equal(t, test.opened, exchanges(idle))
			setWindow(t, admin, `'-infinity'`)
			require.Equal(t, test.passed, exchanges(func() { refuse(t, r) }))
		})
	}
}
