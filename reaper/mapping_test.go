package reaper_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A mapping that contradicts itself would reap the wrong rows, or fail at each apply. New
// says so, and of all faults at once.
func TestNewRefusesMappingsThatCannotBe(t *testing.T) {
	t.Parallel()
	column := func(c reaper.Columns) reaper.Table { return reaper.Table{Columns: c} }
	none := reaper.Columns{State: reaper.None}
	tests := map[string]struct {
		table reaper.Table
		want  error
	}{
		"no key":                        {column(reaper.Columns{JobID: reaper.None}), reaper.ErrMapping},
		"no attempts":                   {column(reaper.Columns{Attempts: reaper.None}), reaper.ErrMapping},
		"no time to run":                {column(reaper.Columns{ScheduledAt: reaper.None}), reaper.ErrMapping},
		"no lease":                      {column(reaper.Columns{LeaseUntil: reaper.None}), reaper.ErrMapping},
		"seconds called none":           {column(reaper.Columns{LeaseSeconds: reaper.None}), reaper.ErrMapping},
		"lost leases called none":       {reaper.Table{Columns: reaper.Columns{LostLeases: reaper.None}, MaxLostLeases: 1}, reaper.ErrMapping},
		"no maximum at all":             {column(reaper.Columns{MaxAttempts: reaper.None}), reaper.ErrMapping},
		"more than no column":           {reaper.Table{Columns: reaper.Columns{MaxAttempts: reaper.None}, MaxAttempts: 3, ExtraAttempts: 1}, reaper.ErrMapping},
		"lost leases without a maximum": {column(reaper.Columns{LostLeases: "lost"}), reaper.ErrMapping},
		"a maximum of no lost leases":   {reaper.Table{MaxLostLeases: 3}, reaper.ErrMapping},
		"lengths of two kinds":          {reaper.Table{LeaseLength: 1e9, Columns: reaper.Columns{LeaseSeconds: "s"}}, reaper.ErrMapping},
		"a length of nothing":           {reaper.Table{LeaseLength: 999}, reaper.ErrMapping},
		"a negative length":             {reaper.Table{LeaseLength: -1}, reaper.ErrNegative},
		"a negative maximum":            {reaper.Table{MaxAttempts: -1}, reaper.ErrNegative},
		"negative extras":               {reaper.Table{ExtraAttempts: -1}, reaper.ErrNegative},
		"negative lost leases": {
			reaper.Table{Columns: reaper.Columns{LostLeases: "lost"}, MaxLostLeases: -1}, reaper.ErrNegative,
		},
		"seconds that are attempts":    {column(reaper.Columns{LeaseSeconds: "attempts"}), reaper.ErrDuplicateName},
		"lost leases that are":         {reaper.Table{Columns: reaper.Columns{LostLeases: "attempts"}, MaxLostLeases: 1}, reaper.ErrDuplicateName},
		"a row that stays leased":      {reaper.Table{Columns: none, OnReset: reaper.Set{"lease_until": reaper.Keep}, OnMove: reaper.Set{"dead": true}}, reaper.ErrMapping},
		"a moved one that does":        {reaper.Table{Columns: none, OnMove: reaper.Set{"lease_until": reaper.Keep, "dead": true}}, reaper.ErrMapping},
		"another column is kept":       {reaper.Table{OnReset: reaper.Set{"payload": reaper.Keep}}, reaper.ErrMapping},
		"the state is kept":            {reaper.Table{OnMove: reaper.Set{"state": reaper.Keep}}, reaper.ErrMapping},
		"only rows that are now":       {reaper.Table{Only: reaper.Set{"seen_at": reaper.Now}}, reaper.ErrMapping},
		"only rows that are kept":      {reaper.Table{Only: reaper.Set{"seen_at": reaper.Keep}}, reaper.ErrMapping},
		"attempts of a reset, counted": {reaper.Table{OnReset: reaper.Set{"attempts": 0}}, reaper.ErrMapping},
		"attempts of a reset, claimed": {reaper.Table{CountsAtClaim: true, OnReset: reaper.Set{"attempts": 0}}, reaper.ErrMapping},
		"attempts given back": {reaper.Table{
			CountsAtClaim: true, Columns: reaper.Columns{LostLeases: "lost"}, MaxLostLeases: 1, OnReset: reaper.Set{"attempts": 0},
		}, reaper.ErrMapping},
		"attempts that stay": {reaper.Table{
			Columns: reaper.Columns{LostLeases: "lost"}, MaxLostLeases: 1, OnReset: reaper.Set{"attempts": 0},
		}, reaper.ErrMapping},
		"lost leases that grow": {reaper.Table{
			Columns: reaper.Columns{LostLeases: "lost"}, MaxLostLeases: 1, OnMove: reaper.Set{"lost": 0},
		}, reaper.ErrMapping},
	}
	for _, name := range []string{"job_id", "state", "scheduled_at", "last_error", "lease_owner", "lease_until"} {
		tests["written already by a reset: "+name] = struct {
			table reaper.Table
			want  error
		}{reaper.Table{OnReset: reaper.Set{name: "1"}}, reaper.ErrMapping}
	}
	for _, name := range []string{"job_id", "state", "last_error", "lease_owner", "lease_until", "attempts"} {
		tests["written already by a move: "+name] = struct {
			table reaper.Table
			want  error
		}{reaper.Table{OnMove: reaper.Set{name: nil}}, reaper.ErrMapping}
	}
	pool := reapertest.OpenQueue(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := reaper.New(pool, reaper.Config{Queue: test.table, DeadLetter: deadletter.InPlace{}})
			require.ErrorIs(t, err, test.want)
		})
	}
}

// Values that a column cannot have, and names that no column can.
func TestNewRefusesValuesThatNoColumnHas(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	text := "text"
	values := map[string]any{
		"a float": 1.5, "a time": time.Now(), "bytes": []byte("x"), "a map": map[string]any{}, "a list": []string{"x"},
		"a pointer": &text, "a length of time": time.Second, "a text of another type": backoffName("x"),
		"a NUL": "a\x00b", "half a character": "a\xc3", "a function": func() {}, "a stranger's Now": reaper.Now + 7, "nothing at all": reaper.Now - 1,
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, table := range []reaper.Table{
				{Only: reaper.Set{"a": value}}, {OnReset: reaper.Set{"a": value}}, {OnMove: reaper.Set{"a": value}},
			} {
				_, err := reaper.New(pool, reaper.Config{Queue: table})
				require.ErrorIs(t, err, reaper.ErrMapping)
				_, err = deadletter.List(t.Context(), pool, deadletter.Store{Queue: table.DeadLetterQueue()}, deadletter.Filter{}, 1)
				require.ErrorIs(t, err, deadletter.ErrQueue)
			}
		})
	}
	for _, column := range []string{"", "a\x00", "\xff", strings.Repeat("x", 64)} {
		_, err := reaper.New(pool, reaper.Config{Queue: reaper.Table{
			Only: reaper.Set{column: 1}, OnReset: reaper.Set{column: 1}, OnMove: reaper.Set{column: 1},
		}})
		require.Error(t, err)
		for _, set := range []string{"Only", "OnReset", "OnMove"} {
			require.Equal(t, 1, strings.Count(err.Error(), "column of "+set+":"), err)
		}
	}
}

type backoffName string

// Whoever maps a queue wants the whole list, and not one fault after another.
func TestNewReportsEveryFaultOfAMapping(t *testing.T) {
	t.Parallel()
	_, err := reaper.New(reapertest.OpenQueue(t), reaper.Config{
		KindBackoff: map[string]backoff.Policy{"a": nil, "b\x00": backoff.Exponential{}, "c": backoff.PolicyFunc(nil)},
		Queue: reaper.Table{
			Columns:     reaper.Columns{JobID: reaper.None, MaxAttempts: reaper.None, JobKind: reaper.None, LeaseSeconds: "attempts"},
			LeaseLength: -1, ExtraAttempts: math.MaxInt, MaxLostLeases: 2,
			Only: reaper.Set{"x": 1.5}, OnReset: reaper.Set{"state": 1}, OnMove: reaper.Set{"y": reaper.Keep, "z\x00": 1},
		},
	})
	for _, part := range []string{
		"Columns.JobID", "MaxAttempts is needed", "ExtraAttempts", "LeaseLength -1ns", `column "attempts"`, "need each other", `"x"`,
		`OnReset: column "state"`, `"y"`, "NUL", `KindBackoff of "a"`, `KindBackoff of "c"`, `"b\x00" is not text`, "no column of kinds",
	} {
		require.ErrorContains(t, err, part)
	}
	for _, want := range []error{
		reaper.ErrMapping, reaper.ErrNegative, reaper.ErrDuplicateName, reaper.ErrNilPart, reaper.ErrKind,
	} {
		require.ErrorIs(t, err, want)
	}
}

// What is set besides a mapping's default changes nothing of a queue's that has it all.
func TestNewTakesMappingsThatCanBe(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	tests := map[string]reaper.Config{
		"a mover that removes the row": {Queue: reaper.Table{Columns: reaper.Columns{State: reaper.None}}, DeadLetter: deadletter.Function{}},
		"in place, with a state":       {DeadLetter: deadletter.InPlace{}},
		"in place, with a mark":        marked(reaper.Table{OnMove: reaper.Set{"failed_at": reaper.Now}}),
		"a mark that a reset undoes":   marked(reaper.Table{OnReset: reaper.Set{"dead": false}, OnMove: reaper.Set{"dead": true}}),
		"a mark that Only excludes":    marked(reaper.Table{Only: reaper.Set{"failed_at": nil}, OnMove: reaper.Set{"failed_at": reaper.Now}}),
		"states that are not there":    marked(reaper.Table{States: reaper.States{Leased: "a", RetryWaiting: "a"}, OnMove: reaper.Set{"dead": true}}),
		"a time that no job has":       marked(reaper.Table{OnMove: reaper.Set{"scheduled_at": "infinity"}}),
		"attempts of a moved job": {Queue: reaper.Table{
			Columns: reaper.Columns{LostLeases: "lost"}, MaxLostLeases: 1, OnMove: reaper.Set{"attempts": 25},
		}},
		"the longest names": {Queue: reaper.Table{Name: pgx.Identifier{"a", "b"}, Only: reaper.Set{strings.Repeat("x", 63): 1}}},
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := reaper.New(pool, cfg)
			require.NoError(t, err)
		})
	}
}
