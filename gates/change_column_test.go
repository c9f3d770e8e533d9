package gates_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// Settings tables differ. A written value must be read as the same value, also by others
// who read a jsonb value as a boolean.
func TestChangesWriteTheColumnValueOfItsType(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	reapertest.Exec(t, pool, `create domain filled as text not null check (value <> '')`)

	tests := map[string]struct {
		column                 string
		gate, window, baseless string // as text: of a gate that is set to " On ", of the window, and of the base
		dates                  bool   // it holds a window
	}{
		"text":               {"text", " On ", "2026-01-02T03:04:05Z", "007", true},
		"text that is":       {"text not null", " On ", "2026-01-02T03:04:05Z", "007", true},
		"varchar":            {"varchar(40)", " On ", "2026-01-02T03:04:05Z", "007", true},
		"a domain over text": {"filled", " On ", "2026-01-02T03:04:05Z", "007", true},
		"jsonb":              {"jsonb", "true", `"2026-01-02T03:04:05Z"`, "7", true},
		"json":               {"json", "true", `"2026-01-02T03:04:05Z"`, "7", true},
		"boolean":            {"boolean", "true", "", "", false},
	}
	pools := reapertest.InEveryMode(t, pool)
	for name, test := range tests {
		for mode, pool := range pools {
			t.Run(name+", "+mode.String(), func(t *testing.T) {
				t.Parallel()
				table := settingsTable(t, pool, name+" "+mode.String(), test.column)
				settings := gates.Table{Name: table}
				for range 2 { // inserted, then updated
					require.NoError(t, settings.Set(t.Context(), pool, operator, enabled, " On "))
					if test.dates {
						require.NoError(t, settings.Set(t.Context(), pool, operator, gates.WindowUntil, "2026-01-02T03:04:05Z"))
						require.NoError(t, settings.Set(t.Context(), pool, operator, gates.BackoffBaseSec, "007"))
					}
				}
				all := rows(t, pool, table.Sanitize())
				require.Equal(t, row{test.gate, operator}, all[enabled])
				require.Equal(t, test.window, all[gates.WindowUntil].Value)
				require.Equal(t, test.baseless, all[gates.BackoffBaseSec].Value)

				until, err := settings.OpenWindow(t.Context(), pool, operator, time.Hour)
				if !test.dates {
					require.ErrorIs(t, err, gates.ErrColumn)
					var pgErr *pgconn.PgError
					require.ErrorAs(t, err, &pgErr)
					require.Equal(t, all, rows(t, pool, table.Sanitize()), "nothing has changed")
					require.NoError(t, settings.CloseWindow(t.Context(), pool, operator), "it can stop all the same")
					return
				}
				require.NoError(t, err)
				values, err := read(t.Context(), pool, settings)
				require.NoError(t, err)
				stored, err := values.Window()
				require.NoError(t, err)
				require.Equal(t, until, stored.Time)
				open, err := values.Gate(dryRun, time.Now())
				require.NoError(t, err)
				require.True(t, open)
				require.NoError(t, settings.CloseWindow(t.Context(), pool, operator))
			})
		}
	}
}

// A value that the column's type rejects must be reported as such.
func TestSetTellsOfAColumnThatDoesNotTakeTheValue(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	reapertest.Exec(t, pool, `create type onoff as enum ('on', 'off')`)

	tests := map[string]struct{ column, key, value string }{
		"a base in booleans":    {"boolean", gates.BackoffBaseSec, "30"},
		"a window in booleans":  {"boolean", gates.WindowUntil, "infinity"},
		"a window in numbers":   {"integer", gates.WindowUntil, "infinity"},
		"a word that is none":   {"onoff", enabled, "true"},
		"a long value":          {"varchar(5)", gates.WindowUntil, "infinity"},
		"a gate in times":       {"timestamptz", enabled, "true"},
		"a gate in a composite": {"pg_class", enabled, "true"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := gates.Table{Name: settingsTable(t, pool, name, test.column)}
			err := settings.Set(t.Context(), pool, operator, test.key, test.value)
			require.ErrorIs(t, err, gates.ErrColumn)
			require.Empty(t, rows(t, pool, settings.Name.Sanitize()))
		})
	}
}

// Without a key two rows may contradict each other, and then no gate is open. An operator
// must still be able to stop the reaper.
func TestChangesDoNotNeedAUniqueKey(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `alter table queue_config drop constraint queue_config_pkey;
		insert into queue_config (key, value) values ('`+dryRun+`', 'false'), ('`+dryRun+`', 'no')`)

	require.NoError(t, gates.Table{}.CloseWindow(t.Context(), pool, operator))

	var closed, others int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) filter (where key = $1 and value = 'true'),
		count(*) filter (where key <> $1) from queue_config`, dryRun).Scan(&closed, &others))
	require.Equal(t, []int{2, 0}, []int{closed, others})
	require.NoError(t, gates.Table{}.Set(t.Context(), pool, operator, enabled, "true"))
	require.NoError(t, gates.Table{}.Set(t.Context(), pool, operator, enabled, "false"))
	require.Equal(t, row{"false", operator}, rows(t, pool, "queue_config")[enabled])
}

// Names and values come from people. None may become SQL.
func TestChangesTakeOddNames(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)

	pools := reapertest.InEveryMode(t, pool)
	for _, name := range []string{`x"; drop table y; --`, "{table}", "$1", "-- /* it's", "select"} {
		settings := gates.Table{Name: settingsTable(t, pool, name, "text")}
		for mode, pool := range pools {
			actor := `'; drop table y; -- $1 \` + mode.String()
			require.NoError(t, settings.Set(t.Context(), pool, actor, enabled, "true"))
			require.Equal(t, map[string]row{enabled: {"true", actor}}, rows(t, pool, settings.Name.Sanitize()))
			require.NoError(t, settings.Unset(t.Context(), pool, actor, enabled))
			require.Empty(t, rows(t, pool, settings.Name.Sanitize()))
		}
	}
	for name, id := range impossible() {
		require.ErrorIs(t, gates.Table{Name: id}.CloseWindow(t.Context(), nil, operator), pgtext.ErrName, name)
	}
}
