//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// waiting bounds how long a test waits for something to show.
const waiting = 30 * time.Second

// terminal is a pseudo-terminal with a program in it, and an emulator that draws
// what the program writes.
type terminal struct {
	t       *testing.T
	master  *os.File
	slave   *os.File // kept open, to ask for the terminal's settings
	before  *term.State
	command *exec.Cmd
	ended   chan error
	wrote   chan struct{} // something was drawn since it was last looked at

	mu        sync.Mutex
	emulator  *vt.Emulator
	alternate bool // the alternate screen is shown
}

// start runs the program in a terminal of 80 columns and 24 lines.
func start(t *testing.T, databaseURL string, args ...string) *terminal {
	t.Helper()
	master, slave, err := pty.Open()
	require.NoError(t, err)
	x := &terminal{
		t: t, master: master, slave: slave, emulator: vt.NewEmulator(80, 24),
		ended: make(chan error, 1), wrote: make(chan struct{}, 1),
	}
	x.emulator.SetCallbacks(vt.Callbacks{AltScreen: func(on bool) { x.alternate = on }})
	require.NoError(t, pty.Setsize(master, &pty.Winsize{Cols: 80, Rows: 24}))
	x.before, err = term.GetState(slave.Fd())
	require.NoError(t, err)

	x.command = exec.CommandContext(t.Context(), "leasereaper", args...)
	x.command.Env = append(os.Environ(), "DATABASE_URL="+databaseURL, "TERM=xterm-256color", "TZ=UTC")
	x.command.Stdin, x.command.Stdout, x.command.Stderr = slave, slave, slave
	x.command.SysProcAttr = ownSession()
	require.NoError(t, x.command.Start())
	go x.draw()
	go x.reply()
	go func() { x.ended <- x.command.Wait() }()
	t.Cleanup(func() {
		require.NoError(t, slave.Close())
		require.NoError(t, master.Close())
	})
	return x
}

// draw gives the emulator what the program writes.
func (x *terminal) draw() {
	buffer := make([]byte, 4096)
	for {
		n, err := x.master.Read(buffer)
		if err != nil {
			return
		}
		x.mu.Lock()
		_, _ = x.emulator.Write(buffer[:n])
		x.mu.Unlock()
		select {
		case x.wrote <- struct{}{}:
		default:
		}
	}
}

// reply gives the program what the emulator answers to its questions.
func (x *terminal) reply() {
	buffer := make([]byte, 4096)
	for {
		n, err := x.emulator.Read(buffer)
		if err != nil {
			return
		}
		_, _ = x.master.Write(buffer[:n])
	}
}

// types sends keys.
func (x *terminal) types(keys string) {
	x.t.Helper()
	_, err := x.master.WriteString(keys)
	require.NoError(x.t, err)
}

func (x *terminal) resize(columns, lines uint16) {
	x.t.Helper()
	x.mu.Lock()
	x.emulator.Resize(int(columns), int(lines))
	x.mu.Unlock()
	require.NoError(x.t, pty.Setsize(x.master, &pty.Winsize{Cols: columns, Rows: lines}))
}

// text is what stands on the screen.
func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.emulator.String()
}

// shows waits until the screen has all of some texts.
func (x *terminal) shows(texts ...string) string {
	x.t.Helper()
	return x.becomes(func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	}, texts)
}

// becomes waits until the screen is as it should be.
func (x *terminal) becomes(wanted func(screen string) bool, what any) string {
	x.t.Helper()
	deadline := time.After(waiting)
	for {
		screen := x.text()
		if wanted(screen) {
			return screen
		}
		select {
		case <-x.wrote:
		case <-deadline:
			require.FailNow(x.t, "the screen never showed it", "%v\n%s", what, screen)
		}
	}
}

// ends waits for the program's end, and wants the terminal as it was.
func (x *terminal) ends() {
	x.t.Helper()
	select {
	case err := <-x.ended:
		require.NoError(x.t, err, x.text())
	case <-time.After(waiting):
		require.FailNow(x.t, "the program did not end", x.text())
	}
	x.becomes(func(string) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return !x.alternate && !x.emulator.CursorHidden()
	}, "the normal screen with its cursor")
	after, err := term.GetState(x.slave.Fd())
	require.NoError(x.t, err)
	require.Equal(x.t, x.before, after, "the terminal's settings")
}

// hasAlternate reports whether the program has taken the alternate screen and
// hidden the cursor.
func (x *terminal) hasAlternate() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.alternate && x.emulator.CursorHidden()
}

// requireFits wants no line of the screen wider than it is, and the last one
// there.
func (x *terminal) requireFits(screen string, columns, lines int) {
	x.t.Helper()
	drawn := strings.Split(screen, "\n")
	require.Len(x.t, drawn, lines, screen)
	for _, line := range drawn {
		require.LessOrEqual(x.t, ansi.StringWidth(line), columns, line)
	}
	require.Contains(x.t, drawn[lines-1], "q quits", screen)
}

// lastLineFits reports whether a screen of a size has the last line in its place.
func lastLineFits(screen string, columns, lines int) bool {
	drawn := strings.Split(screen, "\n")
	return len(drawn) == lines && strings.HasPrefix(drawn[lines-1], "q quits") &&
		ansi.StringWidth(drawn[lines-1]) <= columns
}
