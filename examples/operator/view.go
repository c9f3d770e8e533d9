package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/jackc/pgx/v5/pgconn"
)

// view is what a screen shows: the last look, what was kept of those before, and
// trouble if there is any.
type view struct {
	place         string
	width, height int

	seen    *sight // nil before the first look that saw something
	history *history
	seenAt  time.Time // by this machine's clock, as are now and since
	now     time.Time
	trouble error
	since   time.Time // when the trouble began
}

func newView(place string, width, height int) view {
	return view{place: place, width: width, height: height, now: time.Now()}
}

// saw takes the outcome of a look.
func (v *view) saw(msg sawMsg, now time.Time) {
	v.now = now
	if msg.err != nil {
		if v.trouble == nil {
			v.since = now
		}
		v.trouble = msg.err
		return
	}
	v.trouble, v.seen, v.seenAt = nil, msg.seen, now
	if v.history == nil {
		v.history = newHistory(msg.seen)
		return
	}
	v.history.add(msg.seen)
}

// The styles are few, and mean the same without colours.
func bold(s string) string { return ansi.NewStyle().Bold().Styled(s) }
func dim(s string) string  { return ansi.NewStyle().Faint().Styled(s) }
func good(s string) string { return ansi.NewStyle().ForegroundColor(ansi.Green).Styled(s) }
func bad(s string) string  { return ansi.NewStyle().Bold().ForegroundColor(ansi.Red).Styled(s) }

// draw lays the screen out: the last line says how to leave, however small the
// terminal is.
func (v *view) draw() string {
	lines := v.lines()
	room := max(1, v.height)
	if len(lines) > room-1 {
		lines = lines[:room-1]
	}
	for len(lines) < room-1 {
		lines = append(lines, "")
	}
	lines = append(lines, dim("q quits; nothing here changes anything"))
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, max(1, v.width), "…")
	}
	return strings.Join(lines, "\n")
}

// plain is the look without styles, and no longer than it is.
func (v *view) plain() string {
	lines := v.lines()
	for i, line := range lines {
		lines[i] = strings.TrimRight(ansi.Strip(line), " ")
	}
	return strings.Join(lines, "\n")
}

func (v *view) lines() []string {
	lines := v.header()
	if v.seen == nil {
		if v.trouble == nil {
			lines = append(lines, "", "looking ...")
		}
		return lines
	}
	kinds, jobs := v.room()
	for _, part := range [][]string{
		v.gates(), v.backlog(kinds), v.reapedLines(), v.lastLines(jobs), v.letters(),
	} {
		lines = append(lines, part...)
	}
	return lines
}

// fixedLines are those of a screen besides the kinds and the single jobs: title,
// trouble, gates, headings, totals, what is reaped, dead letters, the last line.
const fixedLines = 16

// room shares the lines that are left between kinds and single jobs.
func (v *view) room() (kinds, jobs int) {
	left := max(2, v.height-fixedLines)
	kinds = min(len(v.seen.Backlog), max(left/2, left-len(v.history.last)))
	return kinds, left - kinds
}

// header names the database, and says when this was, or what keeps a newer look.
func (v *view) header() []string {
	title := bold("leasereaper") + "  " + clean(v.place)
	if v.seen != nil {
		title += "  " + v.seen.Gates.EvaluatedAt.Local().Format(time.TimeOnly)
	}
	if v.trouble == nil {
		return []string{title, ""}
	}
	text := "each look has failed for "
	if unanswered(v.trouble) {
		text = "the database has not answered for "
	}
	text += span(int64(v.now.Sub(v.since).Seconds()))
	if v.seen != nil {
		text += fmt.Sprintf("; this is %s old", span(int64(v.now.Sub(v.seenAt).Seconds())))
	}
	return []string{title, bad(text) + "  " + clean(oneLine(v.trouble))}
}

// unanswered tells a server that is away, or that sends everybody away, from one
// that did not like a statement.
func unanswered(err error) bool {
	var pgErr *pgconn.PgError
	return !errors.As(err, &pgErr) || pgErr.SeverityUnlocalized == "FATAL"
}

// gates shows each gate in a line, and the verdict.
func (v *view) gates() []string {
	var lines []string
	for _, s := range v.seen.Gates.Settings {
		changed := dim(s.changed(v.seen.Gates.EvaluatedAt))
		switch {
		case s.Open != nil && *s.Open:
			lines = append(lines, good("open  ")+"  "+pad(s.Key, gateWidth)+"  "+changed)
		case s.Open != nil:
			lines = append(lines, bad("closed")+"  "+pad(s.Key, gateWidth)+"  "+changed)
		}
	}
	return append(lines, v.seen.Gates.verdict()+v.window())
}

// window says how long the window lasts, if one is set.
func (v *view) window() string {
	if !v.seen.Gates.window.Valid {
		return ""
	}
	return "  " + bold("Window: "+v.seen.Gates.windowState())
}

// gateWidth is the width of the longest key.
const gateWidth = 32
