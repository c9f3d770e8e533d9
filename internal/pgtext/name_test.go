package pgtext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// A name that is quoted wrongly is another table, or allows SQL injection.
func TestNameIsTheTableThatTheServerFinds(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)

	for name, odd := range oddTexts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, err := pgtext.Name(pgx.Identifier{odd})
			require.NoError(t, err)
			_, err = pool.Exec(t.Context(), `create schema `+schema)
			require.NoError(t, err)
			table, err := pgtext.Name(pgx.Identifier{odd, odd})
			require.NoError(t, err)
			_, err = pool.Exec(t.Context(), `create table `+table+` (n) as select 42`)
			require.NoError(t, err)

			var found []string
			err = pool.QueryRow(t.Context(), `
select array_agg(n.nspname || E'\x01' || c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relkind = 'r'`, odd).Scan(&found)
			require.NoError(t, err)
			require.Equal(t, []string{odd + "\x01" + odd}, found)

			var n int
			require.NoError(t, pool.QueryRow(t.Context(), `select n from `+table).Scan(&n))
			require.Equal(t, 42, n)
		})
	}
}

// oddTexts returns valid names and labels that a wrong quoting breaks.
func oddTexts() map[string]string {
	return map[string]string{
		"plain":                      "job_queue_2",
		"upper case":                 "Job_Queue",
		"a keyword":                  "select",
		"a space":                    " ",
		"spaces around":              " queue ",
		"a digit first":              "1queue",
		"a dot":                      "a.b",
		"a double quote":             `a"b`,
		"only double quotes":         `""`,
		"a single quote":             `it's`,
		"only single quotes":         `''`,
		"a backslash":                `a\b`,
		"a backslash at the end":     `ab\`,
		"a backslash and a quote":    `\'`,
		"a quote and a backslash":    `'\`,
		"backslashes, an odd number": `\\\`,
		"an escape for a line break": `\n`,
		"an escape for a character":  `\047 or true`,
		"dollar quotes":              "$$a$$",
		"a parameter":                "$1",
		"a placeholder":              "{job_id}",
		"a comment":                  "a -- b /* c",
		"an injection into a name":   `x"; drop schema public; --`,
		"an injection into a label":  `x'; drop schema public; --`,
		"both, behind a backslash":   `\"; \'; --`,
		"a line break":               "a\nb\r\n",
		"control characters":         "\x01\x08\x1b\x7f",
		"an escape's prefix":         `E'x'`,
		"other scripts":              "ÆØÅ 队列 очередь",
		"beyond the basic plane":     "🦀",
		"a byte order mark":          "\ufeffa",
		"quotes of typography":       "‘a’ “b” ＇c＇",
		"as long as can be":          strings.Repeat("x", 63),
		"as long, of two bytes each": strings.Repeat("é", 31) + "x",
		"as long, all quotes":        strings.Repeat(`"`, 63),
		"as long, all apostrophes":   strings.Repeat(`'`, 63),
		"as long, all backslashes":   strings.Repeat(`\`, 63),
	}
}

// The server truncates a long name and finds another table. pgx removes a NUL, with the
// same effect. Such a name must be an error.
func TestNameRefusesWhatNoTableCanBeCalled(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ id pgx.Identifier }{
		"no name":         {nil},
		"no parts":        {pgx.Identifier{}},
		"three parts":     {pgx.Identifier{"a", "b", "c"}},
		"no schema":       {pgx.Identifier{"", "queue"}},
		"no table":        {pgx.Identifier{"ops", ""}},
		"neither of both": {pgx.Identifier{"", ""}},
	}
	for name, text := range impossibleTexts() {
		tests[name] = struct{ id pgx.Identifier }{pgx.Identifier{text}}
		tests[name+" in a schema"] = struct{ id pgx.Identifier }{pgx.Identifier{"ops", text}}
		tests[name+" as a schema"] = struct{ id pgx.Identifier }{pgx.Identifier{text, "queue"}}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sql, err := pgtext.Name(test.id)
			require.ErrorIs(t, err, pgtext.ErrName)
			require.Empty(t, sql)
		})
	}
}

func impossibleTexts() map[string]string {
	return map[string]string{
		"empty":                         "",
		"a NUL":                         "\x00",
		"a NUL inside":                  "que\x00ue",
		"not UTF-8":                     "queue\xff",
		"half a character":              "\xc3",
		"a surrogate":                   "\xed\xa0\x80",
		"an overlong quote":             "\xc0\xa7",
		"a byte too long":               strings.Repeat("x", 64),
		"too long in bytes":             strings.Repeat("é", 32),
		"too long, cut in a character":  strings.Repeat("x", 62) + "é",
		"very long":                     strings.Repeat("x", 1<<20),
		"too long, a NUL taken from it": strings.Repeat("x", 63) + "\x00",
	}
}

// The result of Name is one or two quoted parts for any text.
func FuzzName(f *testing.F) {
	for _, odd := range oddTexts() {
		f.Add(odd, odd)
	}
	for _, text := range impossibleTexts() {
		f.Add(text, "queue")
		f.Add("ops", text)
	}
	f.Fuzz(func(t *testing.T, schema, table string) {
		sql, err := pgtext.Name(pgx.Identifier{schema, table})
		if err != nil {
			require.ErrorIs(t, err, pgtext.ErrName)
			require.Empty(t, sql)
			return
		}
		first, rest := unquote(t, sql, '"')
		require.Equal(t, schema, first)
		require.Equal(t, byte('.'), rest[0])
		second, rest := unquote(t, rest[1:], '"')
		require.Equal(t, table, second)
		require.Empty(t, rest, "nothing follows the name")
	})
}

// unquote parses a quoted token at the beginning of sql, as the server does. It returns
// its value and the rest of sql.
func unquote(t *testing.T, sql string, quote byte) (text, rest string) {
	t.Helper()
	require.NotEmpty(t, sql)
	require.Equal(t, quote, sql[0])
	var content []byte
	for i := 1; i < len(sql); i++ {
		switch {
		case sql[i] != quote:
			content = append(content, sql[i])
		case i+1 < len(sql) && sql[i+1] == quote:
			content = append(content, quote)
			i++
		default:
			return string(content), sql[i+1:]
		}
	}
	require.Fail(t, "the quotes are not balanced", "%q", sql)
	return "", ""
}

func ExampleName() {
	sql, err := pgtext.Name(pgx.Identifier{"ops", `dead "jobs"`})
	fmt.Println(sql, err)
	// Output: "ops"."dead ""jobs""" <nil>
}
