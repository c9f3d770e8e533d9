package gates_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// Names come from configuration and become SQL. An odd name must find its table and must
// not become other SQL, also if pgx itself writes the parameters into the text, as behind
// some connection poolers.
func TestTableFindsOddNames(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	reapertest.Exec(t, pool, `create schema "Odd-Schema"; create schema "a.b"`)

	pools := reapertest.InEveryMode(t, pool)

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
			reapertest.Exec(t, pool, `create table `+test.name.Sanitize()+` (key text primary key, value text)`)
			reapertest.Exec(t, pool, `insert into `+test.name.Sanitize()+` values ($1, $2)`, enabled, name)

			for mode, pool := range pools {
				got, err := read(t.Context(), pool, source)
				require.NoError(t, err, mode)
				require.Equal(t, gates.Values{enabled: name}, got, mode)
			}
		})
	}
}

// The server truncates or misreads a name that no table can have, and would use the rows
// of another table. Such a name is an error before the first statement.
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
