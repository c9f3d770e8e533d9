package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// A job's kind could move the cursor, or write a line that is not one.
func TestCleanLeavesNothingThatDoesNotPrint(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ text, want string }{
		"plain":               {"send invoice", "send invoice"},
		"other scripts":       {"счёт 請求書 é", "счёт 請求書 é"},
		"an escape sequence":  {"\x1b[2J", "·[2J"},
		"a one-byte sequence": {"\u009b2J", "·2J"},
		"lines":               {"a\r\nb\tc", "a··b·c"},
		"right to left":       {"a\u202eb", "a·b"},
		"not UTF-8":           {"a\xffb", "a\ufffdb"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, test.want, clean(test.text))
		})
	}
}

// Wide letters would push a table's columns apart.
func TestTablesAlignByWidth(t *testing.T) {
	t.Parallel()

	var out strings.Builder
	printTable(&out, []string{"KIND", "N"}, [][]string{{"請求書", "1"}, {"é", "2"}})
	require.Equal(t, "KIND    N\n請求書  1\né       2\n", out.String())
}

// An operator would take yesterday's time for today's, or a lease of ages for a
// fresh one.
func TestMomentsAreNearAndFar(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	tests := map[string]struct {
		at   time.Time
		want string
	}{
		"seconds ago":  {now.Add(-5 * time.Second), "11:59:55 (5s ago)"},
		"minutes ago":  {now.Add(-65 * time.Second), "11:58:55 (1m05s ago)"},
		"hours on":     {now.Add(2*time.Hour + time.Minute), "14:01:00 (in 2h01m)"},
		"days ago":     {now.Add(-49 * time.Hour), "2026-02-27 11:00:00 (2d01h ago)"},
		"ages ago":     {now.AddDate(-9, 0, 0), "2017-03-01 12:00:00 (years ago)"},
		"without time": {reaper.NegativeInfinity(), "-infinity"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, test.want, moment(test.at, now))
		})
	}
}

// pgx tells the same reason once for each way of connecting, over several lines.
func TestErrorsAreOneLine(t *testing.T) {
	t.Parallel()

	err := errors.New("failed:\n\thost a: refused\n\thost a: refused\n\thost b: refused")
	require.Equal(t, "failed: host a: refused host b: refused", message(err))
}
