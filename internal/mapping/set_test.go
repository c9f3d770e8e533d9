package mapping_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/mapping"
)

// Keep leaves a column out of what is written, and each column is written once.
func TestWhatAnUpdateWrites(t *testing.T) {
	t.Parallel()
	keep := set{"owner": mapping.Keep, "lease": mapping.Keep}
	tests := map[string]struct {
		change             func(*mapping.Queue)
		reset, move, again string
	}{
		"all columns": {func(*mapping.Queue) {},
			`state attempts run_at owner lease error`, `state attempts owner lease error`, `state attempts run_at owner lease error`},
		"counted at the claim": {func(q *mapping.Queue) { q.CountsAtClaim = true },
			`state run_at owner lease error`, `state owner lease error`, `state attempts run_at owner lease error`},
		"lost leases": {func(q *mapping.Queue) { q.LostLeases = "lost" },
			`state lost run_at owner lease error`, `state lost owner lease error`, `state attempts lost run_at owner lease error`},
		"both": {func(q *mapping.Queue) { q.LostLeases, q.CountsAtClaim = "lost", true },
			`state lost attempts run_at owner lease error`, `state lost owner lease error`, `state attempts lost run_at owner lease error`},
		"what is not there": {func(q *mapping.Queue) { q.State, q.LeaseOwner, q.LastError = "", "", "" },
			`attempts run_at lease`, `attempts lease`, `attempts run_at lease`},
		"what is kept": {func(q *mapping.Queue) { q.OnReset, q.OnMove = keep, keep },
			`state attempts run_at error`, `state attempts error`, `state attempts run_at error`},
		"further columns, sorted": {func(q *mapping.Queue) { q.OnReset, q.OnMove = set{"z": 1, "a": nil}, set{"z": 1, "b": nil} },
			`state attempts run_at owner lease error a z`, `state attempts owner lease error b z`, `state attempts run_at owner lease error a z`},
	}
	columns := func(assignments string) string {
		var names []string
		for _, assignment := range strings.Split(assignments, ",\n  ") {
			name, _, _ := strings.Cut(assignment, " = ")
			names = append(names, strings.Trim(name, `"`))
		}
		return strings.Join(names, " ")
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := queue()
			test.change(&q)
			require.Equal(t, test.reset, columns(in(t, q, "{set_reset}")))
			require.Equal(t, test.move, columns(in(t, q, "{set_close}")))
			require.Equal(t, test.again, columns(in(t, q, "{set_requeue}")))
			closed := columns(in(t, q, "{set_closed}"))
			require.NotContains(t, closed, "attempts")
			require.NotContains(t, closed, "lost")
		})
	}
}

// Rows are told apart by a state, or by the marks of a move.
func TestHowRowsAreTold(t *testing.T) {
	t.Parallel()
	q := queue()
	q.Only, q.OnMove = set{"a": nil, "b": "x"}, set{"a": mapping.Now, "c": nil, "d": `it's \`}
	require.Equal(t, `q."state" = 'dead'|q."state" = 'dead'|q."state" = 'waiting'|q."state" = 'waiting'`,
		in(t, q, "{is_dead}|{is_closed}|{is_reset}|{is_requeued}"))
	q.State = ""
	dead := `(q."lease" is null and q."a" is not null and q."c" is null and q."d" = E'it''s \\')`
	require.Equal(t, dead+`|`+dead+`|q."lease" is null|q."lease" is null and `+dead+` is not true`,
		in(t, q, "{is_dead}|{is_closed}|{is_reset}|{is_requeued}"))
	require.Equal(t, ` and q."a" is null and q."b" = 'x'| and q."b" = 'x'`, in(t, q, "{only_columns}|{only_dead}"))
	require.Equal(t, map[string]any{"a": nil, "b": "x"}, q.Only, "it is the caller's")
}

// What a redrive writes into a row that it makes anew, without the counts.
func TestRequeued(t *testing.T) {
	t.Parallel()
	q := queue()
	q.LostLeases, q.TimesInUTC = "lost", true
	q.OnReset = set{"attempts": 3, "lost": 4, "owner": mapping.Keep, "a": nil, "b": mapping.Now, "c": false, "d": -1}
	require.Equal(t, map[string]string{"a": "null", "b": "(now() at time zone 'utc')", "c": "'false'", "d": "'-1'"}, q.Requeued())
	require.Len(t, q.OnReset, 7, "it is the caller's")
}

// A name that no column can have is a fault, once, of each set.
func TestNamesOfSets(t *testing.T) {
	t.Parallel()
	q := queue()
	q.Only, q.OnReset, q.OnMove = set{"": 1}, set{"a\x00": 1, "b": 1}, set{strings.Repeat("x", 64): 1}
	var faults []string
	for _, fault := range q.Names().Faults {
		set, _, _ := strings.Cut(fault.Error(), ":")
		faults = append(faults, set)
	}
	require.Equal(t, []string{"column of OnMove", "column of OnReset", "column of Only"}, faults)
}

// Values that a column may have, and those that none has.
func TestCheckValue(t *testing.T) {
	t.Parallel()
	for _, value := range []any{nil, mapping.Now, mapping.Keep, true, 1, int8(1), int16(1), int32(1), int64(1),
		uint(1), uint8(1), uint16(1), uint32(1), uint64(1), "", "☃"} {
		require.NoError(t, mapping.CheckValue(value), value)
	}
	for _, value := range []any{mapping.Special(0), mapping.Keep + 1, 1.5, float32(1), "a\x00", "\xff", []byte("a"), struct{}{}, new(int), 'a' + 0i} {
		require.Error(t, mapping.CheckValue(value), value)
	}
}
