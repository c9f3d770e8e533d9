package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Widths of the columns of kinds and numbers.
const (
	kindWidth   = 30
	numberWidth = 9
)

// backlog shows the leased jobs by kind, those with the most stale leases first.
func (v *view) backlog(most int) []string {
	lines := []string{"", bold(backlogLine("BACKLOG BY KIND", "STALE", "TO MOVE", "LIVE", "OLDEST OVERDUE"))}
	var total kindBacklog
	for i, kind := range v.seen.Backlog {
		if i < most {
			lines = append(lines, kind.line(cell(kind.Kind)))
		}
		total.Stale += kind.Stale
		total.ToMove += kind.ToMove
		total.Live += kind.Live
		total.OverdueSeconds = max(total.OverdueSeconds, kind.OverdueSeconds)
	}
	name := "all"
	if hidden := len(v.seen.Backlog) - most; hidden > 0 {
		name = fmt.Sprintf("all, with %s not shown", count(hidden, "kind", "kinds"))
	}
	return append(lines, total.line(name))
}

func (k kindBacklog) line(name string) string {
	overdue := none
	if k.Stale > 0 {
		overdue = span(k.OverdueSeconds)
	}
	return backlogLine(name, strconv.Itoa(k.Stale), strconv.Itoa(k.ToMove), strconv.Itoa(k.Live), overdue)
}

func backlogLine(name, stale, toMove, live, overdue string) string {
	return pad(short(name, kindWidth), kindWidth) +
		fmt.Sprintf("%*s%*s%*s  %s", numberWidth, stale, numberWidth, toMove, numberWidth, live, overdue)
}

// sparkMinutes is how many minutes the line of bars has.
const sparkMinutes = 60

// reapedLines shows how many jobs were reaped in each minute, and what that
// figure is made of.
func (v *view) reapedLines() []string {
	counts := v.history.minutes(v.seen.Gates.EvaluatedAt, sparkMinutes)
	return []string{
		"",
		bold("REAPED PER MINUTE") + fmt.Sprintf("  last hour, at most %d; this minute %d so far",
			slices.Max(counts), counts[len(counts)-1]),
		good(sparkline(counts)),
		dim("before " + v.history.began.Local().Format(time.TimeOnly) +
			": no resets whose jobs are done; a reset's time is an estimate"),
	}
}

// lastLines shows the jobs that were reaped last.
func (v *view) lastLines(most int) []string {
	lines := []string{bold("LAST ACTIONS")}
	if len(v.history.last) == 0 {
		return append(lines, dim("none in the last hour"))
	}
	for _, s := range v.history.last[:min(most, len(v.history.last))] {
		lines = append(lines, s.line())
	}
	return lines
}

func (s reapedJob) line() string {
	const jobWidth = 9
	line := fmt.Sprintf("%s  %s  %s  %s  %d of %d failed",
		s.At.Local().Format(time.TimeOnly), pad(s.What, len("reset")),
		pad(short(cell(s.Kind), kindWidth/2), kindWidth/2), pad(short(clean(s.JobID), jobWidth), jobWidth),
		s.Attempts, s.MaxAttempts)
	if s.By != nil {
		line += ", by " + clean(*s.By)
	}
	return line
}

// letters counts the dead letters.
func (v *view) letters() []string {
	counts := v.seen.DeadLetters
	return []string{bold("DEAD LETTERS") + fmt.Sprintf("  %s not redriven, %s in the last hour",
		bounded(counts.Waiting), bounded(counts.LastHour))}
}

func bounded(n int) string {
	if n >= letterBound {
		return strconv.Itoa(letterBound) + " or more"
	}
	return strconv.Itoa(n)
}
