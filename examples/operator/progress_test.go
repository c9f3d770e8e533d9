package main

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A drain of an hour would fill a log with lines, or say nothing in it.
func TestProgressIsALineNowAndThenWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer
	p := newProgress(&out, 10_000)
	for sec := 1; sec <= 25; sec++ {
		record := slog.NewRecord(p.began.Add(time.Duration(sec)*time.Second), slog.LevelInfo, "reaped stale leases", 0)
		record.AddAttrs(slog.Int("reset_count", 80), slog.Int("dead_letter_count", 20), slog.Int("failed_count", 1))
		require.NoError(t, p.Handle(context.WithoutCancel(t.Context()), record))
	}
	p.end()
	require.Equal(t, "1000 reaped, 100 a second, about 8990 left, 1m30s, 10 rejected\n"+
		"2000 reaped, 100 a second, about 7980 left, 1m20s, 20 rejected\n", out.String())
}

// Numbers that nobody can act on would stand in the line: a rate of infinity at
// once, or fewer than no jobs left when more became stale meanwhile.
func TestProgressSaysWhatIsLeft(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		after  time.Duration
		reaped int
		want   string
	}{
		"in the same instant":            {0, 100, "100 reaped, 100000 a second, about 900 left, 1s"},
		"slower than one a second":       {200 * time.Second, 100, "100 reaped, 0 a second, about 900 left"},
		"more than there were at first":  {10 * time.Second, 2000, "2000 reaped, 200 a second, about 0 left"},
		"hours to go":                    {100 * time.Second, 100, "100 reaped, 1 a second, about 900 left, 15m01s"},
		"nothing, since all was skipped": {time.Second, 0, "0 reaped, 0 a second, about 1000 left"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := newProgress(&bytes.Buffer{}, 1000)
			p.reaped = test.reaped
			require.Equal(t, test.want, p.line(p.began.Add(test.after)))
		})
	}
}
