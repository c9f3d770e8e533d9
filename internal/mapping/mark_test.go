package mapping_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/mapping"
)

// set is a set of values.
type set = map[string]any

// A mark that a free row may have would have live jobs purged; one that a redrive does not
// undo would lose the jobs that are sent back.
func TestMarksTellMovedRows(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		only, reset, move set
		marks, unmarks    bool
	}{
		"nothing":                       {},
		"NULL":                          {move: set{"a": nil}},
		"NULL, undone":                  {move: set{"a": nil}, reset: set{"a": 1}, unmarks: true},
		"a column that is kept":         {move: set{"owner": mapping.Keep}, reset: set{"owner": mapping.Keep}},
		"a column kept, then written":   {move: set{"owner": mapping.Keep}, reset: set{"owner": nil}},
		"a value":                       {move: set{"a": 0}, marks: true},
		"an empty text":                 {move: set{"a": ""}, marks: true},
		"false":                         {move: set{"a": false}, marks: true},
		"a value, undone":               {move: set{"a": 1}, reset: set{"a": nil}, marks: true, unmarks: true},
		"a value, written by a reset":   {move: set{"a": 1}, reset: set{"a": 1}},
		"the same in another spelling":  {move: set{"a": 1}, reset: set{"a": "1"}},
		"true in another spelling":      {move: set{"a": "true"}, reset: set{"a": true}},
		"now":                           {move: set{"a": mapping.Now}, marks: true, unmarks: true},
		"now, undone":                   {move: set{"a": mapping.Now}, reset: set{"a": nil}, marks: true, unmarks: true},
		"now, another time of a reset":  {move: set{"a": mapping.Now}, reset: set{"a": "today"}},
		"now of both":                   {move: set{"a": mapping.Now}, reset: set{"a": mapping.Now}},
		"a time, now of a reset":        {move: set{"a": "infinity"}, reset: set{"a": mapping.Now}, marks: true, unmarks: true},
		"now of the time to run":        {move: set{"run_at": mapping.Now}},
		"another time to run":           {move: set{"run_at": "infinity"}, marks: true, unmarks: true},
		"attempts":                      {move: set{"attempts": 25}},
		"lost leases":                   {move: set{"lost": 25}},
		"what only is":                  {move: set{"a": 1}, only: set{"a": 1}},
		"what only is not":              {move: set{"a": 1}, only: set{"a": 2}, marks: true},
		"what only is NULL":             {move: set{"a": mapping.Now}, only: set{"a": nil}, marks: true, unmarks: true},
		"what only is a time":           {move: set{"a": mapping.Now}, only: set{"a": "today"}},
		"one of two":                    {move: set{"a": nil, "b": 1}, marks: true},
		"one of two that is undone":     {move: set{"a": 1, "b": 1}, reset: set{"b": 2}, marks: true, unmarks: true},
		"a reset of something else":     {move: set{"a": 1}, reset: set{"b": 2}, marks: true},
		"a value that no column can be": {move: set{"a": []byte("x")}, reset: set{"a": []byte("x")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := queue()
			q.LostLeases, q.Only, q.OnReset, q.OnMove = "lost", test.only, test.reset, test.move
			require.True(t, q.MarksMoved(), "by the state")
			require.True(t, q.Unmarks(), "by the state")
			q.State = ""
			require.Equal(t, test.marks, q.MarksMoved())
			require.Equal(t, test.unmarks, q.Unmarks())
			if !test.marks {
				require.Equal(t, "false", in(t, q, "{is_dead}"))
			}
		})
	}
}

// A redrive that clears a time which marks nothing by itself, as updated_at, would be rejected
// where that must not be NULL.
func TestARedriveClearsTimesOnlyWhereNothingElseUndoesAMark(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		move, reset set
		want        map[string]string
	}{
		"a time alone":               {move: set{"dead_at": mapping.Now}, want: map[string]string{"dead_at": "null"}},
		"a time that a reset writes": {move: set{"dead_at": mapping.Now}, reset: set{"dead_at": nil}, want: map[string]string{"dead_at": "null"}},
		"with a time to run":         {move: set{"run_at": "infinity", "at": mapping.Now}, want: map[string]string{}},
		"with a mark that is undone": {move: set{"dead": true, "at": mapping.Now}, reset: set{"dead": false}, want: map[string]string{"dead": "'false'"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := queue()
			q.State, q.OnReset, q.OnMove = "", test.reset, test.move

			require.True(t, q.Unmarks())
			require.Equal(t, test.want, q.Requeued())
		})
	}
}
