package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// narrow says for a column's header how narrow the column may become. Others stay whole:
// ids and keys are copied into other commands.
var narrow = map[string]int{
	"KIND": 10, "OWNER": 8, "LEASE ENDED": 18, "NOW": 18, "WHICH MEANS": 16, "ERROR": 16, "FINAL ERROR": 12,
	"DATABASE": 12, "OLDEST": 10, "WORST": 16, "REFUSED": 12,
	"VALUE": 8, "STATE": 12, "CHANGED": 19, "MOVED": 8, "REDRIVEN": 8,
}

// dropped are columns that a terminal has no room for, the least useful first.
var dropped = []string{"OWNER", "FAILED TRIES", "REDRIVEN", "FINAL ERROR", "REASON", "JOB"}

// printTable prints aligned columns, two spaces apart. On a terminal they fit its width:
// columns are dropped, then the widest are cut. Elsewhere they are whole.
func printTable(out io.Writer, header []string, rows [][]string) {
	writeTable(out, header, rows, terminalWidth(out))
}

// writeTable prints a table into a room of so many columns of text; 0 is no limit.
func writeTable(out io.Writer, header []string, rows [][]string, room int) {
	lines := append([][]string{header}, rows...)
	widths := make([]int, len(header))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	if room > 0 {
		fit(header, widths, room)
	}
	for _, line := range lines {
		var text strings.Builder
		for i, cell := range line {
			if widths[i] > 0 {
				text.WriteString(pad(short(cell, widths[i]), widths[i]+gap))
			}
		}
		fmt.Fprintln(out, strings.TrimRight(text.String(), " "))
	}
}

// gap is between two columns.
const gap = 2

// terminalWidth is how many columns of text a terminal has; 0 if out is none.
func terminalWidth(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok || !isTerminal(out) {
		return 0
	}
	width, _, err := term.GetSize(file.Fd())
	if err != nil {
		return 0
	}
	return width
}

// fit makes widths fit into the room. A width of 0 stands for a dropped column.
func fit(header []string, widths []int, room int) {
	least := func(i int) int { return leastWidth(header[i], widths[i]) }
	for _, name := range dropped {
		if total(widths, least) <= room {
			break
		}
		for i := 1; i < len(header); i++ { // the first column says what a line is about
			if header[i] == name {
				widths[i] = 0
			}
		}
	}
	for total(widths, func(i int) int { return widths[i] }) > room {
		i := widest(widths, least)
		if i < 0 {
			return
		}
		widths[i]--
	}
}

// leastWidth is how narrow a column may become.
func leastWidth(header string, width int) int {
	if n, ok := narrow[header]; ok {
		return min(n, width)
	}
	return width
}

// widest finds the widest column that may become narrower; -1 if none may.
func widest(widths []int, least func(int) int) int {
	found := -1
	for i, width := range widths {
		if width > least(i) && (found < 0 || width > widths[found]) {
			found = i
		}
	}
	return found
}

// total is how wide a line is, with the gaps between its columns.
func total(widths []int, width func(int) int) int {
	sum := -gap
	for i := range widths {
		if widths[i] > 0 {
			sum += width(i) + gap
		}
	}
	return sum
}

func pad(cell string, width int) string {
	return cell + strings.Repeat(" ", max(0, width-ansi.StringWidth(cell)))
}

// short cuts text to a width.
func short(s string, width int) string { return ansi.Truncate(s, width, "…") }
