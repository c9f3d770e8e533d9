package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/lease-governance/leasereaper/reaper"
)

// none stands for an empty cell.
const none = "-"

// printJSON prints what the library's own JSON is, or a struct of the tool's.
func (t *tool) printJSON(value any) error {
	encoder := json.NewEncoder(t.out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// clean makes text of the tables' safe for a terminal: what does not print, such
// as the beginning of an escape sequence, becomes a dot.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, s)
}

// cell is text of the tables' for one cell.
func cell(s string) string {
	if s == "" {
		return none
	}
	return clean(s)
}

func cellOf(s *string) string {
	if s == nil {
		return none
	}
	return cell(*s)
}

// clock is a time of the database's as people here read it, without the date if
// that is today's.
func clock(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// moment is a time and how far it is from now, both by the database's clock.
func moment(at, now time.Time) string {
	if at.Equal(reaper.NegativeInfinity()) {
		return "-infinity"
	}
	if at.After(now) {
		return fmt.Sprintf("%s (in %s)", clock(at, now), span(int64(at.Sub(now).Seconds())))
	}
	return fmt.Sprintf("%s (%s ago)", clock(at, now), span(int64(now.Sub(at).Seconds())))
}

// span is a time in its two largest units.
func span(sec int64) string {
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	switch {
	case sec < minute:
		return fmt.Sprintf("%ds", sec)
	case sec < hour:
		return fmt.Sprintf("%dm%02ds", sec/minute, sec%minute)
	case sec < day:
		return fmt.Sprintf("%dh%02dm", sec/hour, sec%hour/minute)
	case sec < 1000*day:
		return fmt.Sprintf("%dd%02dh", sec/day, sec%day/hour)
	}
	return "years"
}

// count is a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
