package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/deadletter"
)

// redriving holds the flags of a redrive.
type redriving struct {
	*tool
	letterFlags

	limit int
	all   bool
}

func (t *tool) redriveCommand() *cobra.Command {
	r := &redriving{tool: t}
	cmd := &cobra.Command{
		Use:   "redrive [ID...]",
		Short: "Send jobs back to the queue, with all their attempts",
		Long: `Send the jobs of dead letters back to the queue, in one transaction, oldest
first. Ids and flags select the letters. A job has no failed attempts then, and
can be claimed at once. Its dead letters stay, with the actor and the time.
Without --yes it shows the letters first and asks. Then it redrives only these.`,
	}
	cmd.RunE = t.changes(func(ctx context.Context, ids []string) error {
		if len(ids) == 0 && !r.all && !narrows(cmd.Flags()) {
			return misused("which dead letters? Name ids, or say which with flags, or --all")
		}
		return r.run(ctx, r.filter(ids))
	})
	r.add(t, cmd)
	cmd.Flags().BoolVar(&r.all, "all", false, "all that were not redriven, up to the limit")
	cmd.Flags().IntVar(&r.limit, "limit", applyLimit, "redrive at most so many")
	return cmd
}

func (r *redriving) run(ctx context.Context, filter deadletter.Filter) error {
	filter, err := r.confirmed(ctx, filter)
	if err != nil {
		return err
	}
	store, err := r.store()
	if err != nil {
		return err
	}
	if r.limit < 1 {
		return misused("--limit is below 1")
	}
	result, err := deadletter.Redrive(ctx, r.pool, store, r.actor, filter, r.limit)
	if err != nil {
		return err
	}
	return r.report(result)
}

// confirmed shows the letters that are meant, asks, and returns a filter for
// exactly those.
func (r *redriving) confirmed(ctx context.Context, filter deadletter.Filter) (deadletter.Filter, error) {
	if r.yes {
		return filter, nil
	}
	shown := filter
	shown.Status = deadletter.StatusUnredriven
	page, err := r.page(ctx, shown, r.limit)
	if err != nil {
		return filter, err
	}
	if filter.IDs == nil { // those that are named stay: what is wrong with them is reported
		filter.IDs = idsOf(page.Letters)
	}
	if len(page.Letters) == 0 {
		return filter, nil
	}
	list(r.errs, letterHeader(), page.Letters, letterRow(page))
	fmt.Fprintln(r.errs)
	return filter, r.confirm(ctx, "Send "+these(len(page.Letters))+" back to the queue?")
}

// idsOf is never nil, which would stand for all letters.
func idsOf(letters []deadletter.Letter) []string {
	ids := make([]string, len(letters))
	for i, letter := range letters {
		ids[i] = letter.DeadLetterID
	}
	return ids
}

func (r *redriving) report(result *deadletter.RedriveResult) error {
	if r.json {
		return errors.Join(r.printJSON(result), turnedAway(result.FailedCount))
	}
	fmt.Fprintf(r.out, "Sent %s back to the queue.\n", count(result.RedrivenCount, "job", "jobs"))
	list(r.out, []string{"SKIPPED DEAD LETTER", "JOB", "REASON", "WHICH MEANS"}, result.Skipped,
		func(s deadletter.Skip) []string {
			return []string{clean(s.DeadLetterID), cell(s.JobID), s.Reason, meaningOfSkip(s.Reason)}
		})
	printFailures(r.out, result.Failures)
	if result.Next != "" {
		fmt.Fprintln(r.out, "\nThere may be more: the limit was reached.")
	}
	return turnedAway(result.FailedCount)
}

// meaningOfSkip explains why a dead letter was left alone.
func meaningOfSkip(reason string) string {
	switch reason {
	case deadletter.SkipAlive:
		return "the job is in the queue already, somebody has requeued it"
	case deadletter.SkipLocked:
		return "somebody holds it locked"
	case deadletter.SkipAmbiguous:
		return "several jobs have this id"
	case deadletter.SkipNotFound:
		return "there is no such dead letter"
	case deadletter.SkipRedriven:
		return "it was redriven before"
	case deadletter.SkipFiltered:
		return "the flags leave it out"
	}
	return ""
}
