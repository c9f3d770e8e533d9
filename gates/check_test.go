package gates_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
)

// What a tool checks before it stores a setting is what an apply checks later.
func TestCheckKnowsEachKey(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		key  string
		good []string
		bad  []string
	}{
		"the first gate":  {substrate, []string{"true", " off "}, []string{"", "maybe", "infinity", "10"}},
		"the second gate": {enabled, []string{"1", "no"}, []string{"2", "null"}},
		"the third gate":  {dryRun, []string{"T", "F"}, []string{"tf"}},
		"the window":      {gates.WindowUntil, []string{"infinity", "2026-01-02T03:04:05Z"}, []string{"", "true", "2026-01-02"}},
		"the base":        {gates.BackoffBaseSec, []string{"0", "315360000"}, []string{"", "-1", "true", "315360001"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, gates.Values{}.Check(test.key), "unset is right")
			for _, value := range test.good {
				require.NoError(t, gates.Values{test.key: value}.Check(test.key), value)
			}
			for _, value := range test.bad {
				var valueErr *gates.ValueError
				require.ErrorAs(t, gates.Values{test.key: value}.Check(test.key), &valueErr)
				require.Equal(t, gates.ValueError{Key: test.key, Value: value}, publicParts(valueErr))
			}
		})
	}
	for _, key := range []string{"", "now()", "queue.lease.duration_sec", strings.ToUpper(substrate)} {
		require.ErrorIs(t, gates.Values{key: "true"}.Check(key), gates.ErrKey)
	}
}
