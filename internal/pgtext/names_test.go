package pgtext_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Without a list of all faults a mapping with several mistakes would need one restart for
// each. A name that is not checked would become SQL.
func TestNamesAreQuotedAndTheirFaultsKept(t *testing.T) {
	t.Parallel()
	var n pgtext.Names

	require.Equal(t, `"a.b"."it's ""here"""`, n.Name("queue", pgx.Identifier{"a.b", `it's "here"`}))
	require.Equal(t, `"{queue}"`, n.Column("id", "{queue}"))
	require.Equal(t, `'it''s'`, n.Label("state", "it's"))
	require.Empty(t, n.Faults)
	require.Equal(t, `"a.b"."it's ""here""" "{queue}" 'it''s'`, strings.NewReplacer(n.Pairs...).Replace("{queue} {id} {state}"))

	n.Name("letters", nil)
	n.Column("kind", "")
	n.Label("dead", "a\x00")
	require.Len(t, n.Faults, 3)
	for _, fault := range n.Faults {
		require.ErrorIs(t, fault, pgtext.ErrName)
	}
}

// If two fields had the same column, one statement would write it twice.
func TestTwiceFindsWhatStandsForTwoThings(t *testing.T) {
	t.Parallel()

	require.Empty(t, pgtext.Twice())
	require.Empty(t, pgtext.Twice("a", "", "b", ""))
	require.Equal(t, []string{"a"}, pgtext.Twice("a", "b", "a"))
}
