package mapping_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/mapping"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// A maximum that overflows would fail the claim, and so every reap.
func TestMaximumOfEveryColumn(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	const most = int64(math.MaxInt64)
	tests := map[string]struct {
		q    mapping.Queue
		row  string // the column, as SQL
		want any    // the maximum; nil: none
	}{
		"the column":                    {mapping.Queue{}, "5::smallint", int64(5)},
		"none":                          {mapping.Queue{}, "null::int", nil},
		"extra":                         {mapping.Queue{ExtraAttempts: 2}, "5", int64(7)},
		"extra to the most of its type": {mapping.Queue{ExtraAttempts: 2}, "32767::smallint", int64(32769)},
		"extra to the most":             {mapping.Queue{ExtraAttempts: 2}, "9223372036854775806", most},
		"the most extra":                {mapping.Queue{ExtraAttempts: math.MaxInt}, "5", most},
		"the most extra to the least":   {mapping.Queue{ExtraAttempts: math.MaxInt}, "(-9223372036854775808)::bigint", int64(-1)},
		"extra to none":                 {mapping.Queue{ExtraAttempts: 2}, "null::int", nil},
		"a constant for none":           {mapping.Queue{Maximum: 9}, "null::int", int64(9)},
		"a large constant for none":     {mapping.Queue{Maximum: math.MaxInt}, "null::smallint", most},
		"no constant for one":           {mapping.Queue{Maximum: 9}, "5", int64(5)},
		"no extra to the constant":      {mapping.Queue{Maximum: 9, ExtraAttempts: 2}, "null::int", int64(9)},
		"extra and a constant":          {mapping.Queue{Maximum: 9, ExtraAttempts: 2}, "5", int64(7)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := queue()
			q.Maximum, q.ExtraAttempts = test.q.Maximum, test.q.ExtraAttempts
			got := one[*int64](t, pool, in(t, q, `select ({maximum})::bigint from (select `+test.row+` as maximum) q`))
			limit := one[int64](t, pool, in(t, q, `select {limit} from (select `+test.row+` as maximum) q`))
			if test.want == nil {
				require.Nil(t, got)
				require.Equal(t, most, limit, "never reached")
				return
			}
			require.Equal(t, test.want, *got)
			require.Equal(t, test.want, limit)
		})
	}
	q := queue()
	q.MaxAttempts, q.Maximum = "", 9
	require.Equal(t, "9::bigint", in(t, q, "{maximum}"))
}

// What a reap counts in, and by how much.
func TestCounters(t *testing.T) {
	t.Parallel()
	q := queue()
	require.Equal(t, []any{"attempts", 1}, []any{q.Counter(), q.Step()})
	q.CountsAtClaim = true
	require.Equal(t, []any{"attempts", 0}, []any{q.Counter(), q.Step()})
	q.LostLeases, q.MaxLostLeases = "lost", 3
	require.Equal(t, []any{"lost", 1}, []any{q.Counter(), q.Step()})
	require.Equal(t, `3::bigint "lost" 'lost'`, in(t, q, "{limit} {counter} {counter_label}"))
	q.CountsAtClaim = false
	require.Equal(t, []any{"lost", 1}, []any{q.Counter(), q.Step()})
	require.Contains(t, q.Columns(), "lost")
}
