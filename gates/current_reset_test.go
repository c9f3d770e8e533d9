package gates_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// opened has values with which all gates are open.
var opened = map[string]string{
	substrate: "true", enabled: "on", dryRun: "false", gates.WindowUntil: "infinity", gates.BackoffBaseSec: "7",
}

// A pool's sessions keep the settings that they began with. When an operator resets a
// setting, the gate must be closed in these sessions too.
func TestCurrentSettingResetReachesOpenSessions(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ store, reset string }{
		"of the database":             {`alter database {db} set {key} = {value}`, `alter database {db} reset {key}`},
		"of all of the database":      {`alter database {db} set {key} = {value}`, `alter database {db} reset all`},
		"to the database's default":   {`alter database {db} set {key} = {value}`, `alter database {db} set {key} to default`},
		"of the role":                 {`alter role {role} set {key} = {value}`, `alter role {role} reset {key}`},
		"of all of the role":          {`alter role {role} set {key} = {value}`, `alter role {role} reset all`},
		"of the role in the database": {`alter role {role} in database {db} set {key} = {value}`, `alter role {role} in database {db} reset {key}`},
		"of all of the role in it":    {`alter role {role} in database {db} set {key} = {value}`, `alter role {role} in database {db} reset all`},
		"of every role":               {`alter role all in database {db} set {key} = {value}`, `alter role all in database {db} reset {key}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			role := addRole(t, pool)
			alter(t, pool, role, test.store, opened)
			conn := connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User = role })
			require.Equal(t, gates.Values(opened), readOn(t, conn))

			alter(t, pool, role, test.reset, opened)

			require.Empty(t, readOn(t, conn))
			require.Empty(t, readOn(t, conn), "looking changes nothing")
		})
	}
}

// A reset of one setting must not affect other settings, nor the same setting of another
// role or database.
func TestCurrentSettingResetLeavesTheOthers(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	role := addRole(t, pool)
	alter(t, pool, role, `alter database {db} set {key} = {value}`, opened)
	alter(t, pool, role, `alter role {role} set {key} = {value}`, map[string]string{substrate: "true"})
	conn := connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User = role })

	alter(t, pool, role, `alter role {role} reset all`, map[string]string{substrate: ""})
	reason, err := readOn(t, conn).Refusal(time.Now())
	require.NoError(t, err)
	require.Empty(t, reason)

	alter(t, pool, role, `alter database {db} reset {key}`, map[string]string{dryRun: ""})
	values := readOn(t, conn)
	reason, err = values.Refusal(time.Now())
	require.NoError(t, err)
	require.Equal(t, "queue.lease.reaper_dry_run_only=true", reason)
	require.Equal(t, "7", values[gates.BackoffBaseSec])
}

// An empty value is unset for new sessions. It must close a gate at once, as a reset does.
// A window of the session must hold until it ends.
func TestCurrentSettingIsClosedByAnEmptyValue(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	alter(t, pool, "", `alter database {db} set {key} = {value}`, opened)
	conn := connect(t, pool, func(*pgxpool.Config) {})

	alter(t, pool, "", `alter database {db} set {key} = ''`, opened)

	require.Equal(t, gates.Values{gates.WindowUntil: "infinity"}, readOn(t, conn))
}

// A service may set a value in its session, for a test or for one transaction, also if the
// catalog has none. It must count, and a read must not change it.
func TestCurrentSettingCountsWhatTheSessionHasSet(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ before, inside, seen, after string }{
		"nothing":                 {``, ``, "", "true"},
		"for the session":         {`set {key} = 'yes'`, ``, "yes", "yes"},
		"by a function":           {`select set_config('{key}', 'yes', false)`, ``, "yes", "yes"},
		"for the transaction":     {``, `set local {key} = 'yes'`, "yes", "true"},
		"for it by a function":    {``, `select set_config('{key}', 'yes', true)`, "yes", "true"},
		"for the session, inside": {``, `set {key} = 'yes'`, "yes", "yes"},
		"for both":                {`set {key} = 'yes'`, `set local {key} = 'no'`, "no", "yes"},
		"to nothing":              {`set {key} = ''`, ``, "", ""},
		"and reset again":         {`set {key} = 'yes'`, `reset {key}`, "", "true"},
		"to what it began with":   {`set {key} = 'true'`, ``, "", "true"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			alter(t, pool, "", `alter database {db} set {key} = {value}`, map[string]string{enabled: "true"})
			conn := connect(t, pool, func(*pgxpool.Config) {})
			alter(t, pool, "", `alter database {db} reset all`, map[string]string{enabled: ""})
			run := func(sql string) {
				reapertest.Exec(t, conn, strings.ReplaceAll(sql, "{key}", enabled))
			}
			run(test.before)
			tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadOnly})
			require.NoError(t, err)
			run(test.inside)
			require.Equal(t, test.seen, readIn(t, tx)[enabled])
			require.Equal(t, test.seen, readIn(t, tx)[enabled], "looking changes nothing")
			require.NoError(t, tx.Commit(t.Context()))

			require.Equal(t, test.after, show(t, conn, enabled))
			require.Equal(t, "<null>", show(t, conn, substrate), "looking adds no setting")
		})
	}
}

// A value from a connection string lasts as long as the session, and no operator can reset
// it. It may close a gate but not open one.
func TestCurrentSettingTakesStartUpValuesForUnset(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ options map[string]string }{
		"as parameters": {opened},
		"as options":    {map[string]string{"options": "-c " + enabled + "=on -c " + gates.WindowUntil + "=infinity"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, pgtest.New(t), func(c *pgxpool.Config) { maps.Copy(c.ConnConfig.RuntimeParams, test.options) })
			require.Equal(t, "on", show(t, conn, enabled))
			require.Empty(t, readOn(t, conn))
		})
	}

	closed := map[string]string{enabled: "false", gates.WindowUntil: "-infinity"}
	pool := pgtest.New(t)
	conn := connect(t, pool, func(c *pgxpool.Config) { maps.Copy(c.ConnConfig.RuntimeParams, closed) })
	alter(t, pool, "", `alter database {db} set {key} = {value}`, opened)
	values := readOn(t, conn)
	require.Equal(t, "false", values[enabled])
	require.Equal(t, "-infinity", values[gates.WindowUntil])
}

// addRole makes a role that may log in.
func addRole(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	role := reapertest.One[string](t, pool, `select 'gates_' || md5(current_database())`)
	reapertest.Exec(t, pool, `create role `+role+` login`)
	t.Cleanup(func() { reapertest.DropRole(t, pool, role) })
	return role
}

// alter runs a statement for each setting.
func alter(t *testing.T, pool *pgxpool.Pool, role, statement string, settings map[string]string) {
	t.Helper()
	database := pool.Config().ConnConfig.Database
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		reapertest.Exec(t, pool, strings.NewReplacer(
			"{db}", pgx.Identifier{database}.Sanitize(), "{role}", role, "{key}", key, "{value}", "'"+settings[key]+"'",
		).Replace(statement))
	}
}

// connect begins one session of a pool's database.
func connect(t *testing.T, pool *pgxpool.Pool, change func(*pgxpool.Config)) *pgx.Conn {
	t.Helper()
	conn, err := pgtest.Connect(t, pool, change).Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	return conn.Conn()
}

// readOn reads the settings as an apply on this session would.
func readOn(t *testing.T, conn *pgx.Conn) gates.Values {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // it only read
	return readIn(t, tx)
}

func readIn(t *testing.T, tx pgx.Tx) gates.Values {
	t.Helper()
	values, err := gates.CurrentSetting{}.Read(t.Context(), tx, gates.Keys())
	require.NoError(t, err)
	return values
}

// show returns a setting's value in the session, also if it is empty.
func show(t *testing.T, conn *pgx.Conn, key string) string {
	t.Helper()
	return reapertest.One[string](t, conn, `select coalesce(current_setting($1, true), '<null>')`, key)
}
