package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// progress shows how far a drain is: on a terminal in one line that is
// rewritten, elsewhere in a line now and then. It is the handler of the Reaper's
// log, which has a record for each batch once that is committed.
type progress struct {
	out      io.Writer
	terminal bool
	began    time.Time
	shown    time.Time // when the last line was
	total    int       // leases that were stale at the start
	reaped   int
	failed   int
}

// How often a line is shown.
const (
	rewriteEvery = 100 * time.Millisecond
	lineEvery    = 10 * time.Second
)

func newProgress(out io.Writer, total int) *progress {
	p := &progress{out: out, terminal: isTerminal(out), began: time.Now(), total: total}
	if !p.terminal { // there the first line comes with the first batch
		p.shown = p.began
	}
	return p
}

// Enabled takes what tells of batches, and of failures.
func (p *progress) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle adds a batch.
func (p *progress) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(attr slog.Attr) bool {
		switch attr.Key {
		case "reset_count", "dead_letter_count":
			p.reaped += int(attr.Value.Int64())
		case "failed_count":
			p.failed += int(attr.Value.Int64())
		}
		return true
	})
	p.show(record.Time)
	return nil
}

// WithAttrs is the handler itself: a drain adds none.
func (p *progress) WithAttrs([]slog.Attr) slog.Handler { return p }

// WithGroup is the handler itself: a drain opens none.
func (p *progress) WithGroup(string) slog.Handler { return p }

func (p *progress) show(now time.Time) {
	every := lineEvery
	if p.terminal {
		every = rewriteEvery
	}
	if now.Sub(p.shown) < every {
		return
	}
	p.shown = now
	if p.terminal {
		fmt.Fprint(p.out, "\r"+ansi.EraseLineRight+p.line(now))
		return
	}
	fmt.Fprintln(p.out, p.line(now))
}

// line says how many are reaped, how fast, and how many are left of those that
// were there at the start.
func (p *progress) line(now time.Time) string {
	rate := float64(p.reaped) / max(now.Sub(p.began).Seconds(), time.Millisecond.Seconds())
	left := max(0, p.total-p.reaped-p.failed)
	line := fmt.Sprintf("%d reaped, %.0f a second, about %d left", p.reaped, rate, left)
	if left > 0 && rate >= 1 {
		line += ", " + span(int64(float64(left)/rate)+1)
	}
	if p.failed > 0 {
		line += fmt.Sprintf(", %d rejected", p.failed)
	}
	return line
}

// end wipes the line that was rewritten.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(p.out, "\r"+ansi.EraseLineRight)
	}
}
