package gates_test

import (
	"errors"
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

// The database's own functions read a gate too. If the library read its value differently,
// one of the two would run while the other refuses.
func TestBooleansAreReadAsTheServerReadsThem(t *testing.T) {
	t.Parallel()
	verdicts := judge(t, pgtest.Empty(t), spellings())

	booleans := 0
	for _, v := range verdicts {
		got, err := reading(v.Value)
		if v.Boolean == nil {
			var valueErr *gates.ValueError
			require.ErrorAs(t, err, &valueErr, "%q is no boolean to the server", v.Value)
			continue
		}
		require.NoError(t, err, "%q is a boolean to the server", v.Value)
		require.Equal(t, *v.Boolean, got, "%q", v.Value)
		booleans++
	}
	require.Greater(t, booleans, 3000, "the judge knows booleans")
	require.Greater(t, len(verdicts)-booleans, 15000, "and others")
}

type verdict struct {
	Value   string
	Boolean *bool // nil: not one
}

// judge returns the server's boolean of each value.
func judge(t *testing.T, pool *pgxpool.Pool, values []string) []verdict {
	t.Helper()
	reapertest.Exec(t, pool, `
create function judge(value text) returns boolean language plpgsql as $$
begin
  return $1::text::boolean;
exception
  when invalid_text_representation then
    return null;
end
$$`)
	rows, err := pool.Query(t.Context(), `select v.value, judge(v.value) from unnest($1::text[]) v(value)`, values)
	require.NoError(t, err)
	verdicts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[verdict])
	require.NoError(t, err)
	require.Len(t, verdicts, len(values))
	return verdicts
}

// reading returns the library's boolean of a value. The other gates are open.
func reading(value string) (bool, error) {
	reason, err := gates.Values{
		gates.SubstrateEnabled: value,
		gates.ReaperEnabled:    "true",
		gates.DryRunOnly:       "false",
	}.Refusal(time.Now())
	switch reason {
	case "":
		return err == nil, err
	case gates.SubstrateEnabled + "=false":
		return false, err
	}
	return false, errors.New("closed at another gate: " + reason)
}

// spellings returns every string of one or two ASCII characters; every prefix of a
// boolean's word and a little more, in every case, with every kind of white space around
// and inside; and similar strings.
func spellings() []string {
	var all []string
	for a := byte(1); a < 0x80; a++ {
		all = append(all, string(rune(a)))
		for b := byte(1); b < 0x80; b++ {
			all = append(all, string([]byte{a, b}))
		}
	}
	for _, word := range words() {
		all = append(all, word)
		for _, space := range spaces() {
			all = append(all, space+word, word+space, space+word+space, word+space+word)
			if len(word) > 1 {
				all = append(all, word[:1]+space+word[1:])
			}
		}
	}
	return append(all, lookalikes()...)
}

// words returns the beginnings of the words for booleans, the words with a
// character too many, all of those in every case, and numbers.
func words() []string {
	all := []string{"00", "01", "11", "10", "2", "-1", "+1", "-0", "1.0", "1e0", "0x1", "null", "nil", "enabled"}
	for _, word := range []string{"true", "false", "yes", "no", "on", "off"} {
		for end := range len(word) + 1 {
			all = append(all, cases(word[:end])...)
		}
		all = append(all, word+"x", word+word, word+"1", "'"+word+"'", `"`+word+`"`, word+";", word+"--")
	}
	return append(all, "1", "0")
}

// cases returns a word in all 2^len combinations of upper and lower case.
func cases(word string) []string {
	all := make([]string, 0, 1<<len(word))
	for mask := range 1 << len(word) {
		mixed := []byte(word)
		for i := range mixed {
			if mask&(1<<i) != 0 {
				mixed[i] -= 'a' - 'A'
			}
		}
		all = append(all, string(mixed))
	}
	return all
}

// spaces returns white space that the server skips and white space that it does not: from
// the control characters to Unicode's spaces.
func spaces() []string {
	return append(strings.Split(" |\t|\n|\v|\f|\r|\r\n| \t\n\v\f\r", "|"),
		"\x01", "\x08", "\x0e", "\x1c", "\x1f", "\x7f",
		"\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u202f", "\u200b", "\u3000", "\ufeff")
}

// lookalikes returns words that Unicode's case folding or normalization would make
// booleans.
func lookalikes() []string {
	return []string{
		"yeſ", "YEſ", "falſe", "ye\u017f ", "ｔｒｕｅ", "ＴＲＵＥ", "１", "０", "ⓣ", "ⓨ", "¹", "₁", "①", "١", "оn", "οn",
		"ON\u0301", "ﬀ", "oﬀ", "tr\u00fce", "tru\u0435", "nо", "ｎｏ", "t\u200brue", "\u202etrue", "ⅰ", "Ｙ", "ŷ", "ƒ",
	}
}
