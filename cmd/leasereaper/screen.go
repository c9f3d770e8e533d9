package main

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
)

// screen is the live view: it looks, shows, waits, and looks again. One look is
// under way at most.
type screen struct {
	view

	ctx    context.Context // of looks, which the terminal library runs without one
	looker looker
	every  time.Duration
}

// looker looks at the database.
type looker interface {
	look(ctx context.Context, since time.Duration) (*sight, error)
}

// What happens to a screen besides keys and sizes.
type (
	sawMsg struct {
		seen *sight
		err  error
	}
	lookMsg struct{} // it is time to look again
	tickMsg struct{} // a second has gone by
)

func newScreen(ctx context.Context, w *watcher, every time.Duration) *screen {
	return &screen{view: newView(w.place, printedWidth, printedHeight), ctx: ctx, looker: w, every: every}
}

// Init looks for the first time.
func (s *screen) Init() tea.Cmd { return tea.Batch(s.look(), tick()) }

// View draws on the alternate screen, which leaves what was in the terminal.
func (s *screen) View() tea.View {
	v := tea.NewView(s.draw())
	v.AltScreen = true
	return v
}

// Update takes a key, a size, or what a look has seen.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return s, key(msg.String())
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case tickMsg:
		s.now = time.Now()
		return s, tick()
	case lookMsg:
		look := s.look()
		return s, look
	case sawMsg:
		s.saw(msg, time.Now())
		return s, tea.Tick(s.pause(), func(time.Time) tea.Msg { return lookMsg{} })
	}
	return s, nil
}

func key(name string) tea.Cmd {
	switch name {
	case "q", "Q", "esc", "ctrl+c", "ctrl+d":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	}
	return nil
}

func tick() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} }) }

// look looks as far back as the last look that saw something, and a bit.
func (s *screen) look() tea.Cmd {
	span := since(s.seen, time.Since(s.seenAt))
	return func() tea.Msg {
		seen, err := s.looker.look(s.ctx, span)
		return sawMsg{seen, err}
	}
}

// busyShare bounds the part of the time that looking takes: a look at a large
// backlog is followed by a longer pause.
const busyShare = 10

// pause is how long to wait for the next look.
func (s *screen) pause() time.Duration {
	if s.seen == nil || s.trouble != nil {
		return s.every
	}
	return max(s.every, busyShare*s.seen.took)
}
