package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lease-governance/leasereaper/deadletter"
)

func (t *tool) lettersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "dead-letters",
		Aliases: []string{"letters"},
		Short:   "List, redrive and purge the dead letters",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(t.listCommand(), t.redriveCommand(), t.purgeCommand())
	return cmd
}

// letterFlags say which dead letters are meant.
type letterFlags struct {
	deadletter.Filter

	older, younger age
}

func (f *letterFlags) add(t *tool, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Kinds, "kind", nil, "only jobs of this kind; may be given more than once")
	flags.StringSliceVar(&f.JobIDs, "job", nil, "only of this job; may be given more than once")
	flags.StringVar(&f.ErrorContains, "error", "", "only with this in their final error")
	flags.Var(&f.older, "older-than", "only those that were moved longer ago, as in 36h or 7d")
	flags.Var(&f.younger, "younger-than", "only those that were moved since")
	_ = cmd.RegisterFlagCompletionFunc("kind", t.completeLetterKinds)
}

// filter is what the flags ask for, of some letters or all.
func (f *letterFlags) filter(ids []string) deadletter.Filter {
	filter := f.Filter
	filter.OlderThan, filter.YoungerThan = duration(f.older), duration(f.younger)
	if len(ids) > 0 {
		filter.IDs = ids
	}
	return filter
}

// narrows reports whether any flag leaves letters out.
func narrows(flags *pflag.FlagSet) bool {
	for _, name := range []string{"kind", "job", "error", "older-than", "younger-than"} {
		if flags.Changed(name) {
			return true
		}
	}
	return false
}

// page reads dead letters.
func (t *tool) page(ctx context.Context, filter deadletter.Filter, limit int) (*deadletter.Page, error) {
	if limit < 1 {
		return nil, misused("--limit is below 1")
	}
	return deadletter.List(ctx, t.pool, t.queue.letters, filter, limit)
}

// sqlLetterKinds reads the kinds of the dead letters.
const sqlLetterKinds = `-- leasereaper.letter_kinds
select distinct d.job_kind from {letters} d limit 100`

// completeLetterKinds offers the kinds of the dead letters.
func (t *tool) completeLetterKinds(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return t.offer(cmd, sqlLetterKinds)
}

// letterRow is a dead letter in a table.
func letterRow(page *deadletter.Page) func(deadletter.Letter) []string {
	return func(l deadletter.Letter) []string {
		redriven := none
		if l.RedrivenAt != nil {
			redriven = moment(*l.RedrivenAt, page.EvaluatedAt) + " by " + cellOf(l.RedrivenBy)
		}
		return []string{
			clean(l.DeadLetterID), clean(l.JobID), cell(l.JobKind), fmt.Sprintf("%d of %d", l.Attempts, l.MaxAttempts),
			moment(l.MovedAt, page.EvaluatedAt) + " by " + cell(l.MovedBy), cell(l.FinalError), redriven,
		}
	}
}

func letterHeader() []string {
	return []string{"DEAD LETTER", "JOB", "KIND", "FAILED TRIES", "MOVED", "FINAL ERROR", "REDRIVEN"}
}
