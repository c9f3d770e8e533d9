package gates_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// current reads the settings as an apply on this pool would.
func current(t *testing.T, pool *pgxpool.Pool) gates.Values {
	t.Helper()
	values, err := read(t.Context(), pool, gates.CurrentSetting{})
	require.NoError(t, err)
	return values
}

// store sets a setting of the database for new sessions.
func store(t *testing.T, pool *pgxpool.Pool, key, value string) {
	t.Helper()
	reapertest.Exec(t, pool, `do $$ begin
		execute format('alter database %I set `+key+` = %L', current_database(), '`+value+`'); end $$`)
}

// A closed gate must be closed at once. An opened gate must not be open in a session that
// began before.
func TestCurrentSettingClosesAtOnceAndOpensWithTheNextSession(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	require.Empty(t, current(t, pool))

	store(t, pool, gates.SubstrateEnabled, "true")
	store(t, pool, gates.ReaperEnabled, "on")
	store(t, pool, gates.DryRunOnly, "false")
	store(t, pool, gates.BackoffBaseSec, "7")
	reason, err := current(t, pool).Refusal(time.Now())
	require.NoError(t, err)
	require.Equal(t, "queue.job_substrate.enabled=false", reason)

	pool.Reset()
	values := current(t, pool)
	reason, err = values.Refusal(time.Now())
	require.NoError(t, err)
	require.Empty(t, reason)
	base, err := values.BackoffBase()
	require.NoError(t, err)
	require.EqualValues(t, 7, base)

	store(t, pool, gates.ReaperEnabled, "off") // the session that is open knows nothing of it
	reason, err = current(t, pool).Refusal(time.Now())
	require.NoError(t, err)
	require.Equal(t, "queue.lease.reaper_enabled=false", reason)
}

// A setting of a role overrides one of the database, as in PostgreSQL.
func TestCurrentSettingKnowsTheRolesSettings(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	role := addRole(t, pool)
	reapertest.Exec(t, pool, `grant pg_monitor to `+role)
	for _, key := range gates.Keys()[:2] {
		store(t, pool, key, "true")
	}
	store(t, pool, gates.DryRunOnly, "true")
	reapertest.Exec(t, pool, `alter role `+role+` set `+gates.DryRunOnly+` = 'false'`)
	asRole := pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User = role })

	reason, err := current(t, asRole).Refusal(time.Now())
	require.NoError(t, err)
	require.Empty(t, reason)
	pool.Reset()
	reason, err = current(t, pool).Refusal(time.Now())
	require.NoError(t, err)
	require.Equal(t, "queue.lease.reaper_dry_run_only=true", reason)
}

// A closed window must be closed at once here too. A longer window begins with the next
// session, like every opening.
func TestCurrentSettingGoesByTheEarlierEndOfTwoWindows(t *testing.T) {
	t.Parallel()
	const early, late = "2026-01-02T03:04:05Z", "2026-01-02 05:04:05+01"

	tests := map[string]struct{ session, stored, want string }{
		"none is set":              {"", "", ""},
		"the session's alone":      {early, "", early},
		"a stored one alone":       {"", late, late},
		"the session's is earlier": {early, late, early},
		"the stored one is":        {late, early, early},
		"the same moment twice":    {"2026-01-02 04:04:05Z", late, "2026-01-02 04:04:05Z"},
		"one is for ever":          {"infinity", late, late},
		"one was never":            {early, "-infinity", "-infinity"},
		"the session's is garbage": {"soon", early, "soon"},
		"the stored one is too":    {early, "soon", "soon"},
		"garbage beside never":     {"-infinity", "soon", "soon"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			if test.session != "" {
				store(t, pool, gates.WindowUntil, test.session)
			}
			pool.Reset()
			tx := reapertest.Begin(t, pool) // the session has it, whatever is stored now
			store(t, pool, gates.WindowUntil, test.stored)
			values, err := gates.CurrentSetting{}.Read(t.Context(), tx, gates.Keys())
			require.NoError(t, err)
			require.Equal(t, test.want, values[gates.WindowUntil])
		})
	}
}

// An empty value after a reset is unset, not an error.
func TestCurrentSettingTakesEmptyForUnset(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	reapertest.Exec(t, tx, `set local `+gates.ReaperEnabled+` = 'true'`)
	require.NoError(t, tx.Rollback(t.Context())) // now it is there, and empty

	require.Empty(t, current(t, pool))
}
