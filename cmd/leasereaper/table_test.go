package main

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

// On a terminal of 80 columns a table would break into lines that nobody can read, or an id
// could not be copied.
func TestTablesFitATerminal(t *testing.T) {
	t.Parallel()

	const id = "3525108f-63dd-4ab1-821b-0323e80a7b7c"
	long := strings.Repeat("long", 10)
	ago := "2026-12-03 14:02:13 (123d20h ago)"
	tests := map[string]struct {
		header, row []string
		whole       []string // cells that are not cut
	}{
		"a dry run": {
			header: []string{"JOB", "KIND", "OWNER", "FAILED TRIES", "LEASE ENDED", "WOULD"},
			row:    []string{id, long, long, "3 of 5", ago, "reset"}, whole: []string{id, "reset"},
		},
		"an apply": {
			header: []string{"JOB", "KIND", "FAILED TRIES", "NOW"},
			row:    []string{id, long, "3", "dead letter " + id}, whole: []string{id},
		},
		"skipped jobs": {
			header: []string{"SKIPPED JOB", "REASON", "WHICH MEANS"},
			row:    []string{id, "not_stale", long + long}, whole: []string{id, "not_stale"},
		},
		"rejected jobs": {
			header: []string{"REJECTED JOB", "SQLSTATE", "ERROR"},
			row:    []string{id, "23514", long + long}, whole: []string{id, "23514"},
		},
		"gates": {
			header: []string{"SETTING", "VALUE", "STATE", "CHANGED"},
			row:    []string{"queue.lease.reaper_window_until", long, long, ago + long},
			whole:  []string{"queue.lease.reaper_window_until"},
		},
		"dead letters": {
			header: letterHeader(), row: []string{id, id, long, "5 of 5", ago + long, long, ago + long}, whole: []string{id},
		},
		"rejected dead letters": {
			header: []string{"REJECTED DEAD LETTER", "JOB", "SQLSTATE", "ERROR"},
			row:    []string{id, id, "23514", long + long}, whole: []string{id, "23514"},
		},
		"skipped dead letters": {
			header: []string{"SKIPPED DEAD LETTER", "JOB", "REASON", "WHICH MEANS"},
			row:    []string{id, id, "not_found", long}, whole: []string{id},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			const room = 80
			var out strings.Builder
			writeTable(&out, test.header, [][]string{test.row}, room)
			for line := range strings.Lines(out.String()) {
				require.LessOrEqual(t, ansi.StringWidth(strings.TrimRight(line, "\n")), room, line)
			}
			for _, cell := range test.whole {
				require.Contains(t, out.String(), cell)
			}

			out.Reset()
			writeTable(&out, test.header, [][]string{test.row}, 0)
			for _, cell := range test.row {
				require.Contains(t, out.String(), cell, "what is no terminal gets all of it")
			}
		})
	}
}
