package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/gates"
)

func (t *tool) windowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "window",
		Short: "Let applies through for a time",
		Long: `A window opens the third gate for a time, so that nobody needs to remember to
close it. The database's clock ends it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(t.windowOpenCommand(), t.windowCloseCommand())
	return cmd
}

func (t *tool) windowOpenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "open DURATION",
		Short: "Open a window, as in 30m, 4h or 2d",
		Long: `Let applies through for a time: set queue.lease.reaper_dry_run_only to false
and queue.lease.reaper_window_until to its end. The other gates stay as they are.
A window that is open already ends at the new time instead.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: t.changes(func(ctx context.Context, args []string) error {
			return t.openWindow(ctx, args[0])
		}),
	}
}

func (t *tool) windowCloseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "close",
		Short: "Close the window, so that no apply commits any more",
		Long: `Stop applies: set queue.lease.reaper_dry_run_only to true and remove
queue.lease.reaper_window_until, whether a window was open or not. When it is
done, no apply commits any more.`,
		Args: cobra.NoArgs,
		RunE: t.changes(func(ctx context.Context, _ []string) error { return t.closeWindow(ctx) }),
	}
}

func (t *tool) openWindow(ctx context.Context, text string) error {
	duration, err := parseAge(text)
	if err != nil {
		return err
	}
	if duration < time.Second || duration > gates.MaxWindow {
		return misused("a window takes a second to 30 days, not %s", text)
	}
	question := fmt.Sprintf("Let applies through for %s?", span(int64(duration.Seconds())))
	if err := t.confirmWindow(ctx, question); err != nil {
		return err
	}
	if _, err := t.queue.settings.OpenWindow(ctx, t.pool, t.actor, duration); err != nil {
		return err
	}
	return t.showGates(ctx)
}

func (t *tool) closeWindow(ctx context.Context) error {
	if err := t.confirmWindow(ctx, "Let no apply through any more?"); err != nil {
		return err
	}
	if err := t.queue.settings.CloseWindow(ctx, t.pool, t.actor); err != nil {
		return err
	}
	return t.showGates(ctx)
}

// confirmWindow shows the gates as they are, and asks.
func (t *tool) confirmWindow(ctx context.Context, question string) error {
	if t.yes {
		return nil
	}
	state, err := t.gateState(ctx)
	if err != nil {
		return err
	}
	printGates(t.errs, state)
	fmt.Fprintln(t.errs)
	return t.confirm(ctx, question)
}
