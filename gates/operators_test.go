package gates_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// An operator opens a window from a laptop whose clock is wrong. The window must last for
// the given duration by the database's clock, and have the actor.
func TestOpenWindowOpensForATimeByTheDatabasesClock(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		before   map[string]string
		duration time.Duration
	}{
		"nothing was set":        {nil, time.Hour},
		"all was set":            {map[string]string{dryRun: "true", gates.WindowUntil: "2001-01-01T00:00:00Z"}, time.Minute},
		"it is open for longer":  {map[string]string{dryRun: "false", gates.WindowUntil: "infinity"}, time.Microsecond},
		"it is open for ever":    {map[string]string{dryRun: "no"}, gates.MaxWindow},
		"garbage stood there":    {map[string]string{dryRun: "maybe", gates.WindowUntil: ""}, 90 * time.Minute},
		"a fraction is left off": {nil, time.Hour + 999},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, test.before)
			set(t, pool, map[string]string{substrate: "off", "another": "x"})
			earliest := reapertest.One[time.Time](t, pool, `select clock_timestamp()`)

			until, err := gates.Table{}.OpenWindow(t.Context(), pool, operator, test.duration)

			require.NoError(t, err)
			latest := reapertest.One[time.Time](t, pool, `select clock_timestamp()`)
			lasts := test.duration.Truncate(time.Microsecond)
			require.WithinRange(t, until, earliest.Add(lasts), latest.Add(lasts))
			require.Equal(t, time.UTC, until.Location())

			all := rows(t, pool, "queue_config")
			require.Equal(t, row{"false", operator}, all[dryRun])
			require.Equal(t, row{until.Format(time.RFC3339Nano), operator}, all[gates.WindowUntil])
			require.Equal(t, "off", all[substrate].Value)
			require.NotEqual(t, operator, all[substrate].By)
			require.Len(t, all, 4)
			updated := reapertest.One[time.Time](t, pool, `select distinct updated_at from queue_config
				where updated_by = $1`, operator)
			require.Equal(t, until.Add(-lasts), updated.UTC())

			values, err := read(t.Context(), pool, gates.Table{})
			require.NoError(t, err)
			stored, err := values.Window()
			require.NoError(t, err)
			require.Equal(t, until, stored.Time)
		})
	}
}

// If the end of a window stayed after CloseWindow, it would refuse applies after the next
// opening.
func TestCloseWindowClosesTheGateAndLeavesNoEnd(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ before map[string]string }{
		"a window is open":     {map[string]string{dryRun: "false", gates.WindowUntil: "infinity"}},
		"it has passed":        {map[string]string{dryRun: "false", gates.WindowUntil: "2001-01-01T00:00:00Z"}},
		"it is open for ever":  {map[string]string{dryRun: "off"}},
		"it is closed already": {map[string]string{dryRun: "true"}},
		"nothing was set":      {nil},
		"garbage stood there":  {map[string]string{dryRun: "?", gates.WindowUntil: "?"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, test.before)
			set(t, pool, map[string]string{substrate: "on", enabled: "on"})

			require.NoError(t, gates.Table{}.CloseWindow(t.Context(), pool, operator))

			all := rows(t, pool, "queue_config")
			require.Equal(t, row{"true", operator}, all[dryRun])
			require.NotContains(t, all, gates.WindowUntil)
			require.Len(t, all, 3)
			values, err := read(t.Context(), pool, gates.Table{})
			require.NoError(t, err)
			reason, err := values.Refusal(time.Now())
			require.NoError(t, err)
			require.Equal(t, "queue.lease.reaper_dry_run_only=true", reason)
		})
	}
}

// If a tool stored a typo, every apply would fail until somebody corrects it. So invalid
// values are not stored.
func TestSetTakesKnownKeysAndValidValuesAlone(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	settings := gates.Table{}

	good := map[string]string{
		substrate: "true", enabled: " On ", dryRun: "f",
		gates.WindowUntil: "2026-01-02 03:04:05+00", gates.BackoffBaseSec: "30",
	}
	for range 2 { // the second time the rows are there
		for key, value := range good {
			require.NoError(t, settings.Set(t.Context(), pool, operator, key, value))
			require.Equal(t, row{value, operator}, rows(t, pool, "queue_config")[key])
		}
	}
	before := rows(t, pool, "queue_config")
	require.Len(t, before, 5)

	bad := map[string]string{
		substrate: "", enabled: "maybe", dryRun: "true\x00", gates.WindowUntil: "tomorrow", gates.BackoffBaseSec: "10s",
	}
	for key, value := range bad {
		var valueErr *gates.ValueError
		require.ErrorAs(t, settings.Set(t.Context(), pool, operator, key, value), &valueErr)
		require.Equal(t, gates.ValueError{Key: key, Value: value}, publicParts(valueErr))
	}
	for _, key := range []string{"", "queue.lease.duration_sec", "now()", strings.ToUpper(enabled)} {
		require.ErrorIs(t, settings.Set(t.Context(), pool, operator, key, "true"), gates.ErrKey)
		require.ErrorIs(t, settings.Unset(t.Context(), pool, operator, key), gates.ErrKey)
	}
	require.Equal(t, before, rows(t, pool, "queue_config"))
}

// Without an actor nobody knows who has changed a gate.
func TestEveryChangeNeedsAnActor(t *testing.T) {
	t.Parallel()
	settings := gates.Table{}

	for _, actor := range []string{"", " \t\n", "a\x00b", "\xff"} {
		_, err := settings.OpenWindow(t.Context(), nil, actor, time.Hour)
		require.ErrorIs(t, err, gates.ErrActor)
		require.ErrorIs(t, settings.CloseWindow(t.Context(), nil, actor), gates.ErrActor)
		require.ErrorIs(t, settings.Set(t.Context(), nil, actor, enabled, "true"), gates.ErrActor)
		require.ErrorIs(t, settings.Unset(t.Context(), nil, actor, enabled), gates.ErrActor)
	}
}

// A window of a year would be an open gate that is forgotten, and a negative duration is a
// mistake.
func TestOpenWindowBoundsItsDuration(t *testing.T) {
	t.Parallel()

	for _, duration := range []time.Duration{
		0, 1, 999, -time.Hour, gates.MaxWindow + 1, 1<<63 - 1, -1 << 63,
	} {
		until, err := gates.Table{}.OpenWindow(t.Context(), nil, operator, duration)
		require.ErrorIs(t, err, gates.ErrDuration, duration)
		require.Zero(t, until)
	}
	_, err := gates.Table{}.OpenWindow(t.Context(), nil, "", 0)
	require.ErrorIs(t, err, gates.ErrActor)
	require.ErrorIs(t, err, gates.ErrDuration, "all faults are reported at once")
}

// A removed setting has its default again, and an audit trigger on the table must see who
// removed it.
func TestUnsetRemovesASettingAndSignsIt(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	set(t, pool, map[string]string{enabled: "true", dryRun: "false"})
	reapertest.Exec(t, pool, `
create table removed (key text, removed_by text, removed_at timestamptz);
create function note() returns trigger language plpgsql as $$
begin
  insert into removed values (old.key, old.updated_by, old.updated_at);
  return old;
end
$$;
create trigger note after delete on queue_config for each row execute function note()`)

	for range 2 { // the second time there is nothing to remove
		require.NoError(t, gates.Table{}.Unset(t.Context(), pool, operator, enabled))
	}

	require.Equal(t, []string{dryRun}, keysOf(rows(t, pool, "queue_config")))
	var key, by string
	var late bool
	require.NoError(t, pool.QueryRow(t.Context(),
		`select key, removed_by, removed_at > now() - interval '1 minute' from removed`).Scan(&key, &by, &late))
	require.Equal(t, []any{enabled, operator, true}, []any{key, by, late})
}

func keysOf(all map[string]row) []string {
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	return keys
}
