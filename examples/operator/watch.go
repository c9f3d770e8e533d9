package main

import (
	"context"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

func (t *tool) watchCommand() *cobra.Command {
	var every time.Duration
	var once bool
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Watch the queue and its reapers on a live screen",
		Long: `Watch the gates, the backlog, the reaped jobs and the dead letters, on a screen
that fits 80 columns and 24 lines. It only reads, in read-only transactions. q or
Ctrl-C ends it.

The reaped jobs are read from the tables. A move is a dead letter, with its time.
A reset shows in the queue row until the job is finished. Its time is that of the
next attempt minus the backoff by the settings.`,
		Args: cobra.NoArgs,
		RunE: t.reads(func(ctx context.Context, _ []string) error {
			if once {
				return t.watchOnce(ctx)
			}
			return t.watch(ctx, every)
		}),
	}
	cmd.PreRunE = func(*cobra.Command, []string) error { return t.checkWatch(every, once) }
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "how often to read, 100ms or more")
	t.addGrace(cmd.Flags())
	cmd.Flags().BoolVar(&once, "once", false, "read once, print that, and end")
	return cmd
}

const shortestEvery = 100 * time.Millisecond

func (t *tool) checkWatch(every time.Duration, once bool) error {
	switch {
	case every < shortestEvery:
		return misused("--every is below %s", shortestEvery)
	case t.json && !once:
		return misused("watch has no JSON but of one look: --once --json")
	case !once && !t.hasTerminal():
		return misused("watch needs a terminal; --once prints one look anywhere")
	}
	return nil
}

// hasTerminal reports whether there is a terminal to show on and to type in.
func (t *tool) hasTerminal() bool { return isTerminal(t.out) && isTerminal(t.in) }

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(file.Fd())
}

// watch shows the screen until somebody ends it. Whatever the database does, it
// goes on.
func (t *tool) watch(ctx context.Context, every time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := t.watcher()
	if err != nil {
		return err
	}
	screen := newScreen(ctx, w, every)
	program := tea.NewProgram(screen, tea.WithInput(t.in), tea.WithOutput(t.out), tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, program.Quit)() // SIGTERM, or SIGINT from elsewhere, ends it as q does
	_, err = program.Run()
	return err
}

// Sizes of a look that is printed.
const (
	printedWidth  = 100
	printedHeight = 60
)

func (t *tool) watchOnce(ctx context.Context) error {
	w, err := t.watcher()
	if err != nil {
		return err
	}
	seen, err := w.look(ctx, wholeHistory)
	if err != nil {
		return err
	}
	if t.json {
		return t.printJSON(seen)
	}
	v := newView(w.place, printedWidth, printedHeight)
	v.seen, v.history = seen, newHistory(seen)
	fmt.Fprintln(t.out, v.plain())
	return nil
}
