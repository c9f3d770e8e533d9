package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/reaper"
)

func (t *tool) drainCommand() *cobra.Command {
	var batch int
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Reset or move all jobs with stale leases, batch by batch",
		Long: `Reap all stale leases, oldest first, each batch in a transaction of its own.
Ctrl-C or a closed gate ends it. The finished batches stay committed.`,
		Args: cobra.NoArgs,
		RunE: t.changes(func(ctx context.Context, _ []string) error { return t.drain(ctx, batch) }),
	}
	cmd.Flags().IntVar(&batch, "batch", applyLimit, "reap at most so many jobs in one transaction")
	return t.addScope(cmd)
}

func (t *tool) drain(ctx context.Context, batch int) error {
	if batch < 1 {
		return misused("--batch is below 1")
	}
	plan, err := t.look(ctx, previewLines)
	if err != nil {
		return err
	}
	if !t.yes {
		done, err := t.confirmDrain(ctx, plan)
		if err != nil {
			return err
		}
		if done != nil {
			return t.printDrain(done, 0)
		}
	}
	return t.reapAll(ctx, batch, plan.StaleLeaseCount)
}

// confirmDrain asks, unless it is clear already what comes of the drain: it is
// refused, or there is nothing to do. What becomes stale just now, nobody has
// seen.
func (t *tool) confirmDrain(ctx context.Context, plan *reaper.DryRunResult) (*reaper.DrainResult, error) {
	reason, err := t.closed(ctx)
	if err != nil {
		return nil, err
	}
	if reason != "" || plan.StaleLeaseCount == 0 {
		return &reaper.DrainResult{Refused: reason != "", Reason: reason}, nil
	}
	printStale(t.errs, plan, previewLines, plan.StaleLeaseCount)
	fmt.Fprintln(t.errs)
	return nil, t.confirm(ctx, "Reap all stale leases, also those that become stale meanwhile?")
}

// reapAll drains, and shows its progress.
func (t *tool) reapAll(ctx context.Context, batch, total int) error {
	p := newProgress(t.errs, total)
	r, err := t.reaper(func(cfg *reaper.Config) { cfg.Logger = slog.New(p) })
	if err != nil {
		return err
	}
	result, err := r.Drain(ctx, t.actor, batch)
	p.end()
	return errors.Join(err, t.printDrain(result, time.Since(p.began)))
}

// printDrain shows what was committed, also when an error ended the drain.
func (t *tool) printDrain(result *reaper.DrainResult, took time.Duration) error {
	if t.json {
		if err := t.printJSON(result); err != nil {
			return err
		}
	} else if !result.Refused || result.Batches > 0 {
		fmt.Fprintf(t.out, "Reset %d, moved %d to the dead letters, in %s and %s.\n",
			result.ResetCount, result.DeadLetterCount,
			count(result.Batches, "batch", "batches"), took.Round(time.Millisecond))
	}
	return errors.Join(refusedMidway(result), turnedAway(result.FailedCount))
}

// refusedMidway tells a refusal that changed nothing from a gate that was closed
// during the drain.
func refusedMidway(result *reaper.DrainResult) error {
	if result.Refused && result.Batches > 0 {
		return fmt.Errorf("stopped after %s: %w", count(result.Batches, "batch", "batches"),
			refused(true, result.Reason))
	}
	return refused(result.Refused, result.Reason)
}
