package gates_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Names come from configuration and end up in SQL. An odd one must find its
// table, and none may become more than a name, also where pgx itself puts the
// parameters into the text, as behind some connection poolers.
func TestTableFindsOddNames(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	_, err := pool.Exec(t.Context(), `create schema "Odd-Schema"; create schema "a.b"`)
	require.NoError(t, err)

	pools := inEveryMode(t, pool)

	tests := map[string]struct{ name pgx.Identifier }{
		"quotes in a schema of its own": {pgx.Identifier{"Odd-Schema", `set"tings`}},
		"dots in both parts":            {pgx.Identifier{"a.b", "c.d"}},
		"an injection":                  {pgx.Identifier{`x"; drop schema "a.b"; --`}},
		"a placeholder":                 {pgx.Identifier{"{table}"}},
		"a parameter":                   {pgx.Identifier{"$1"}},
		"a comment":                     {pgx.Identifier{"-- /* it's"}},
		"a keyword":                     {pgx.Identifier{"select"}},
		"a line break":                  {pgx.Identifier{"a\nb"}},
		"a snowman":                     {pgx.Identifier{"☃"}},
		"a space":                       {pgx.Identifier{" "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := gates.Table{Name: test.name}
			require.NoError(t, source.Validate())
			_, err := pool.Exec(t.Context(), `create table `+test.name.Sanitize()+` (key text primary key, value text)`)
			require.NoError(t, err)
			_, err = pool.Exec(t.Context(), `insert into `+test.name.Sanitize()+` values ($1, $2)`, enabled, name)
			require.NoError(t, err)

			for mode, pool := range pools {
				got, err := read(t.Context(), pool, source)
				require.NoError(t, err, mode)
				require.Equal(t, gates.Values{enabled: name}, got, mode)
			}
		})
	}
}

// A name that no table can have is cut short or misread by the server, and then
// another table's rows decide. It is caught before the first statement.
func TestTableRefusesImpossibleNames(t *testing.T) {
	t.Parallel()

	for name, id := range impossible() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := gates.Table{Name: id}
			require.ErrorIs(t, source.Validate(), pgtext.ErrName)
			got, err := source.Read(t.Context(), nil, gates.Keys())
			require.ErrorIs(t, err, pgtext.ErrName)
			require.Nil(t, got)
		})
	}
	require.NoError(t, gates.Table{}.Validate(), "no name is the default")
}

// impossible returns names that no table can have.
func impossible() map[string]pgx.Identifier {
	return map[string]pgx.Identifier{
		"an empty part":           {""},
		"an empty schema":         {"", "settings"},
		"an empty table":          {"ops", ""},
		"three parts":             {"db", "ops", "settings"},
		"a NUL":                   {"sett\x00ings"},
		"not UTF-8":               {"settings\xff"},
		"a byte too long":         {strings.Repeat("x", 64)},
		"long in its second part": {"ops", strings.Repeat("é", 32)},
	}
}

// replaceKey puts a key as a literal where @ is.
func replaceKey(sql, key string) string {
	return strings.ReplaceAll(sql, "@", "'"+key+"'")
}

// inEveryMode returns a pool for each way in which pgx can run a query.
func inEveryMode(t *testing.T, pool *pgxpool.Pool) map[pgx.QueryExecMode]*pgxpool.Pool {
	t.Helper()
	pools := map[pgx.QueryExecMode]*pgxpool.Pool{}
	for mode := pgx.QueryExecModeCacheStatement; mode <= pgx.QueryExecModeSimpleProtocol; mode++ {
		pools[mode] = pgtest.Connect(t, pool, func(config *pgxpool.Config) {
			config.ConnConfig.DefaultQueryExecMode = mode
		})
	}
	require.Len(t, pools, 5)
	return pools
}
