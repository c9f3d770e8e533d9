package pgtext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// A label is a part of the SQL. With either setting of standard_conforming_strings, which
// can be changed for a role, it must be the configured state and not become SQL.
func TestLabelIsTheTextThatTheServerReads(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)

	for _, setting := range []string{"on", "off"} {
		conforming := pgtest.Connect(t, pool, func(config *pgxpool.Config) {
			config.ConnConfig.RuntimeParams["standard_conforming_strings"] = setting
		})
		for name, odd := range oddTexts() {
			t.Run(name+", standard conforming strings "+setting, func(t *testing.T) {
				t.Parallel()
				label, err := pgtext.Label(odd)
				require.NoError(t, err)

				var got, current string
				err = conforming.QueryRow(t.Context(),
					`select `+label+`::text, current_setting('standard_conforming_strings')`).Scan(&got, &current)
				require.NoError(t, err)
				require.Equal(t, odd, got)
				require.Equal(t, setting, current)
			})
		}
	}
}

// States are often an enum. The literal must get its type from the column.
func TestLabelComparesWithAnEnum(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)

	for name, odd := range oddTexts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			label, err := pgtext.Label(odd)
			require.NoError(t, err)
			enum := pgx.Identifier{name}.Sanitize()
			_, err = pool.Exec(t.Context(), `create type `+enum+` as enum (`+label+`, 'other')`)
			require.NoError(t, err)

			var found []string
			err = pool.QueryRow(t.Context(),
				`select array_agg(v::text) from unnest(enum_range(null::`+enum+`)) v where v = `+label).Scan(&found)
			require.NoError(t, err)
			require.Equal(t, []string{odd}, found)
		})
	}
}

// A state that no row can have is most likely a mistake in the configuration. It would
// match nothing, and every lease would look live.
func TestLabelRefusesWhatNoStateCanBeCalled(t *testing.T) {
	t.Parallel()

	for name, text := range impossibleTexts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sql, err := pgtext.Label(text)
			require.ErrorIs(t, err, pgtext.ErrName)
			require.Empty(t, sql)
		})
	}
}

// The result of Label is one literal for any text.
func FuzzLabel(f *testing.F) {
	for _, odd := range oddTexts() {
		f.Add(odd)
	}
	for _, text := range impossibleTexts() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, label string) {
		sql, err := pgtext.Label(label)
		if err != nil {
			require.ErrorIs(t, err, pgtext.ErrName)
			require.Empty(t, sql)
			return
		}
		literal, escaped := strings.CutPrefix(sql, "E")
		content, rest := unquote(t, literal, '\'')
		require.Empty(t, rest, "nothing follows the literal")
		if !escaped {
			require.NotContains(t, content, `\`, "its meaning depends on the server's setting")
			require.Equal(t, label, content)
			return
		}
		for _, run := range strings.FieldsFunc(content, func(r rune) bool { return r != '\\' }) {
			require.Zero(t, len(run)%2, "an escape other than of the backslash")
		}
		require.Equal(t, label, strings.ReplaceAll(content, `\\`, `\`))
	})
}

func ExampleLabel() {
	for _, label := range []string{"leased", "worker's", `a\b`} {
		sql, err := pgtext.Label(label)
		fmt.Println(sql, err)
	}
	// Output:
	// 'leased' <nil>
	// 'worker''s' <nil>
	// E'a\\b' <nil>
}
