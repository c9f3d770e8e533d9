package gatesql_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/gatesql"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// Answers in one batch must not get mixed up, and a setting with two values must not count
// as clear.
func TestSourcesAnswerInOneBatch(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	reapertest.Exec(t, pool, `create table settings (key text, value text);
		insert into settings values ('a.b', 'x'), ('a.b', null), ('a.c', null), ('a.d', 'y'), ('other', 'z')`)
	reapertest.Exec(t, pool, `do $$ begin
		execute format('alter database %I set a.b = ''stored''', current_database());
		execute format('alter database %I set a.d = ''same''', current_database()); end $$`)
	tx := reapertest.Begin(t, pool)
	reapertest.Exec(t, tx, `set local a.b = 'here'; set local a.d = 'same'`)
	table, err := gatesql.NewTable(pgx.Identifier{"settings"})
	require.NoError(t, err)

	keys := []string{"a.b", "a.c", "a.d"}
	b := &pgx.Batch{}
	fixed := gatesql.Fixed{"a.b": "fixed"}.Queue(b, keys, true)
	current := gatesql.CurrentSetting{}.Queue(b, keys, true)
	unlocked := table.Queue(b, keys, false)
	locked := table.Queue(b, keys, true)
	require.Equal(t, 3, b.Len())
	require.NoError(t, tx.SendBatch(t.Context(), b).Close())

	require.Equal(t, &gatesql.Answer{Values: map[string]string{"a.b": "fixed"}, Read: true}, fixed)
	here, stored := "here", "stored"
	require.Equal(t, &gatesql.Answer{
		Read:   true,
		Values: map[string]string{"a.d": "same"}, Unclear: []gatesql.Unclear{{Key: "a.b", First: &here, Second: &stored}},
	}, current)
	require.Equal(t, "y", unlocked.Values["a.d"])
	require.NotContains(t, unlocked.Values, "a.c")
	require.Len(t, unlocked.Unclear, 1)
	require.Equal(t, "a.b", unlocked.Unclear[0].Key)
	require.Equal(t, unlocked.Values["a.d"], locked.Values["a.d"])
}

// A name that is quoted wrongly is the name of another table, or becomes SQL.
func TestNewTableQuotesTheName(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]pgx.Identifier{
		`queue_config`: nil, `"Settings"`: {"Settings"}, `"ops"."a""b"`: {"ops", `a"b`},
	} {
		table, err := gatesql.NewTable(id)
		require.NoError(t, err)
		require.Equal(t, name, table.Name)
	}
	_, err := gatesql.NewTable(pgx.Identifier{"a", "b", "c"})
	require.ErrorIs(t, err, pgtext.ErrName)
}
