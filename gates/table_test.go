package gates_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// A read of the gates for display must not lock the rows, as only an apply should.
func TestReadUnlockedTakesNoLock(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `insert into queue_config (key, value) values ($1, 'true')`, gates.ReaperEnabled)
	tx := reapertest.Begin(t, pool)
	reapertest.Exec(t, tx, `set transaction read only`)

	values, err := gates.Table{}.ReadUnlocked(t.Context(), tx, gates.Keys())

	require.NoError(t, err)
	require.Equal(t, gates.Values{gates.ReaperEnabled: "true"}, values)
	reapertest.Exec(t, pool, `select from queue_config for update nowait`)
}

func ExampleTable() {
	source := gates.Table{Name: pgx.Identifier{"ops", "settings"}}
	fmt.Println(source.Validate())
	// Output:
	// <nil>
}

// Administrators grant only the documented privileges. If these are too few, no apply ever
// runs. With fewer, there would be no fence.
func TestTableNeedsSelectAndUpdateOfAnyOneColumn(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		grant    string
		sqlState string
	}{
		"of updated_at":               {`select, update (updated_at)`, ""},
		"of another column":           {`select, update (updated_by)`, ""},
		"of all columns":              {`select, update`, ""},
		"of the read columns":         {`select (key, value), update (updated_at)`, ""},
		"only select":                 {`select`, "42501"},
		"only update":                 {`update`, "42501"},
		"without the values":          {`select (key), update (updated_at)`, "42501"},
		"insert and delete instead":   {`select, insert`, "42501"},
		"references is no substitute": {`select, references`, "42501"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, open())
			tx := as(t, pool, test.grant)

			values, err := gates.Table{}.Read(t.Context(), tx, gates.Keys())
			if test.sqlState == "" {
				require.NoError(t, err)
				require.Equal(t, gates.Values(open()), values)
				return
			}
			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr)
			require.Equal(t, test.sqlState, pgErr.Code)
			require.Nil(t, values)
		})
	}
}

// Settings tables differ: their values are text, booleans or jsonb. A value with quotes,
// or NULL as a text, would be read wrongly.
func TestTableReadsTheColumnValueOfAnyType(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)

	tests := map[string]struct {
		column string
		value  string // SQL
		want   gates.Values
	}{
		"text":                   {"text", `' On '`, gates.Values{enabled: " On "}},
		"an empty text":          {"text", `''`, gates.Values{enabled: ""}},
		"a text with quotes":     {"text", `'"true"'`, gates.Values{enabled: `"true"`}},
		"a text of null":         {"text", `'null'`, gates.Values{enabled: "null"}},
		"a NULL text":            {"text", `null`, gates.Values{}},
		"varchar":                {"varchar(10)", `'true'`, gates.Values{enabled: "true"}},
		"a domain over text":     {"onoff", `'on'`, gates.Values{enabled: "on"}},
		"boolean true":           {"boolean", `true`, gates.Values{enabled: "true"}},
		"boolean false":          {"boolean", `false`, gates.Values{enabled: "false"}},
		"a NULL boolean":         {"boolean", `null`, gates.Values{}},
		"integer":                {"integer", `1`, gates.Values{enabled: "1"}},
		"jsonb boolean":          {"jsonb", `'true'`, gates.Values{enabled: "true"}},
		"jsonb string":           {"jsonb", `'" Yes "'`, gates.Values{enabled: " Yes "}},
		"jsonb string of quotes": {"jsonb", `'"\"true\""'`, gates.Values{enabled: `"true"`}},
		"jsonb string of null":   {"jsonb", `'"null"'`, gates.Values{enabled: "null"}},
		"jsonb number":           {"jsonb", `'0'`, gates.Values{enabled: "0"}},
		"jsonb fraction":         {"jsonb", `'1.0'`, gates.Values{enabled: "1.0"}},
		"jsonb null":             {"jsonb", `'null'`, gates.Values{}},
		"a NULL jsonb":           {"jsonb", `null`, gates.Values{}},
		"jsonb object":           {"jsonb", `'{"on": true}'`, gates.Values{enabled: `{"on": true}`}},
		"json with spaces":       {"json", `' true '`, gates.Values{enabled: "true"}},
	}
	reapertest.Exec(t, pool, `create domain onoff as text check (value in ('on', 'off'))`)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := pgx.Identifier{name}
			reapertest.Exec(t, pool, `create table `+table.Sanitize()+` (key text primary key, value `+test.column+`)`)
			reapertest.Exec(t, pool, `insert into `+table.Sanitize()+` values ($1, `+test.value+`)`, enabled)

			got, err := read(t.Context(), pool, gates.Table{Name: table})
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// In a table with other settings, only the reaper's keys are read and locked.
func TestTableReadsOnlyTheKeysItIsAskedFor(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	set(t, pool, map[string]string{
		substrate: "true", enabled: "false", dryRun: "no", gates.BackoffBaseSec: "30",
		"queue.lease.duration_sec": "60", "QUEUE.LEASE.REAPER_ENABLED": "true", enabled + " ": "true",
	})

	got, err := read(t.Context(), pool, gates.Table{})
	require.NoError(t, err)
	require.Equal(t, gates.Values{substrate: "true", enabled: "false", dryRun: "no", gates.BackoffBaseSec: "30"}, got)

	tx := reapertest.Begin(t, pool)
	got, err = gates.Table{}.Read(t.Context(), tx, []string{dryRun})
	require.NoError(t, err)
	require.Equal(t, gates.Values{dryRun: "no"}, got)
	_, err = pool.Exec(t.Context(), `update queue_config set value = '90' where key not in ($1, 'x')`, dryRun)
	require.NoError(t, err, "what was not asked for is not locked")
}

// A reaper with a missing or a wrong table must return an error. It must not read
// everything as unset and be refused for ever.
func TestTableThatCannotBeReadIsTheServersError(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)

	tests := map[string]struct {
		name     pgx.Identifier
		sqlState string
	}{
		"no table":           {pgx.Identifier{"settings"}, "42P01"},
		"no schema":          {pgx.Identifier{"ops", "queue_config"}, "42P01"},
		"another case":       {pgx.Identifier{"Queue_Config"}, "42P01"},
		"a path in one part": {pgx.Identifier{"public.queue_config"}, "42P01"},
		"other columns":      {pgx.Identifier{"job_queue"}, "42703"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := read(t.Context(), pool, gates.Table{Name: test.name})
			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr)
			require.Equal(t, test.sqlState, pgErr.Code)
			require.Nil(t, got)
		})
	}
}

// Without a primary key two rows can contradict each other. Nobody knows which is meant,
// so neither may open a gate.
func TestTableRefusesAKeyWithTwoRows(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)

	tests := map[string]struct{ rows string }{
		"that contradict each other": {`(@, 'true'), (@, 'false')`},
		"that agree":                 {`(@, 'true'), (@, 'true')`},
		"of which the last is NULL":  {`(@, 'true'), (@, null)`},
		"of which the first is NULL": {`(@, null), (@, 'true')`},
		"that are both NULL":         {`(@, null), (@, null)`},
		"and a third":                {`(@, null), (@, null), (@, 'true')`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := pgx.Identifier{name}
			reapertest.Exec(t, pool, `create table `+table.Sanitize()+` (key text, value text)`)
			reapertest.Exec(t, pool, `insert into `+table.Sanitize()+` values `+replaceKey(test.rows, dryRun))

			got, err := read(t.Context(), pool, gates.Table{Name: table})
			var valueErr *gates.ValueError
			require.ErrorAs(t, err, &valueErr)
			require.Equal(t, dryRun, valueErr.Key)
			require.Nil(t, got)
		})
	}
}
