package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/deadletter"
)

// purging holds the flags of a purge.
type purging struct {
	*tool

	older age
	cfg   deadletter.PurgeConfig
}

func (t *tool) purgeCommand() *cobra.Command {
	p := &purging{tool: t}
	cmd := &cobra.Command{
		Use:   "purge --older-than AGE",
		Short: "Remove old dead letters",
		Long: `Remove dead letters that were moved, and redriven, longer ago than an age, batch
by batch. With --unredriven also those that nobody sent back, and their jobs with
them, which nothing can bring back.`,
		Args: cobra.NoArgs,
		RunE: t.changes(func(ctx context.Context, _ []string) error { return p.run(ctx) }),
	}
	cmd.Flags().Var(&p.older, "older-than", "how long ago, as in 36h or 90d; it must be given")
	cmd.Flags().BoolVar(&p.cfg.Unredriven, "unredriven", false, "also those that were not redriven, with their jobs")
	cmd.Flags().IntVar(&p.cfg.Batch, "batch", applyLimit, "remove at most so many in one transaction")
	_ = cmd.MarkFlagRequired("older-than")
	return cmd
}

func (p *purging) run(ctx context.Context) error {
	if p.cfg.Batch < 1 {
		return misused("--batch is below 1")
	}
	page, err := p.preview(ctx)
	if err != nil {
		return err
	}
	if !p.yes && len(page.Letters) == 0 { // what grows old now, nobody has seen
		return p.report(&deadletter.PurgeResult{})
	}
	if err := p.confirmPurge(ctx, page); err != nil {
		return err
	}
	result, err := deadletter.Purge(ctx, p.pool, p.queue.letters, duration(p.older), p.cfg)
	return errors.Join(err, p.report(result))
}

// preview reads the oldest letters that may go, for the question.
func (p *purging) preview(ctx context.Context) (*deadletter.Page, error) {
	if p.yes {
		return &deadletter.Page{}, nil
	}
	filter := deadletter.Filter{OlderThan: duration(p.older), Status: deadletter.StatusRedriven}
	if p.cfg.Unredriven {
		filter.Status = deadletter.StatusAny
	}
	return p.page(ctx, filter, applyLimit)
}

// confirmPurge shows those letters, and asks.
func (p *purging) confirmPurge(ctx context.Context, page *deadletter.Page) error {
	if p.yes {
		return nil
	}
	question := "Remove redriven dead letters for good?"
	if p.cfg.Unredriven {
		question = "Remove these, also those that were NOT redriven, and the jobs of those, for good?"
	}
	list(p.errs, letterHeader(), page.Letters, letterRow(page))
	atLeast := ""
	if page.Next != "" {
		atLeast = " or more"
	}
	fmt.Fprintf(p.errs, "\n%d%s dead letters are older than %s.\n", len(page.Letters), atLeast, p.older.String())
	return p.confirm(ctx, question)
}

// report prints what was committed, also when an error ended the purge.
func (p *purging) report(result *deadletter.PurgeResult) error {
	if p.json {
		return errors.Join(p.printJSON(result), turnedAway(result.FailedCount))
	}
	fmt.Fprintf(p.out, "Removed %s that were redriven, %d that were not, and %s, in %s.\n",
		count(result.RedrivenCount, "dead letter", "dead letters"), result.UnredrivenCount,
		count(result.JobCount, "job", "jobs"), count(result.Batches, "batch", "batches"))
	printFailures(p.out, result.Failures)
	return turnedAway(result.FailedCount)
}

func printFailures(out io.Writer, failures []deadletter.Failure) {
	list(out, []string{"REJECTED DEAD LETTER", "JOB", "SQLSTATE", "ERROR"}, failures,
		func(f deadletter.Failure) []string {
			return []string{clean(f.DeadLetterID), cell(f.JobID), cell(f.SQLState), clean(f.Error)}
		})
}
