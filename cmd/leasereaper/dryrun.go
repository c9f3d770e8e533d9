package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/reaper"
)

// Limits, unless flags say others.
const (
	lookLimit  = 20   // jobs that a look lists
	applyLimit = 1000 // jobs of one apply
)

func (t *tool) dryRunCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "dry-run",
		Short: "Show what an apply would do now",
		Long: `Show how many leases are stale and what would become of the oldest of them. It
cannot write, asks no gate, and works on a hot standby.`,
		Args: cobra.NoArgs,
		RunE: t.reads(func(ctx context.Context, _ []string) error { return t.dryRun(ctx, limit) }),
	}
	cmd.Flags().IntVar(&limit, "limit", lookLimit, "list at most so many jobs")
	return t.addScope(cmd)
}

func (t *tool) dryRun(ctx context.Context, limit int) error {
	result, err := t.look(ctx, limit)
	if err != nil {
		return err
	}
	if t.json {
		return t.printJSON(result)
	}
	printStale(t.out, result, limit, result.StaleLeaseCount)
	return nil
}

// look is a dry run.
func (t *tool) look(ctx context.Context, limit int) (*reaper.DryRunResult, error) {
	if limit < 1 {
		return nil, misused("--limit is below 1")
	}
	r, err := t.reaper(nil)
	if err != nil {
		return nil, err
	}
	return r.DryRun(ctx, limit)
}

// printStale lists jobs of a dry run, at most so many, of those that there are in
// all.
func printStale(out io.Writer, result *reaper.DryRunResult, most, all int) {
	fmt.Fprintf(out, "%s at %s.\n", leases(result.StaleLeaseCount), clock(result.EvaluatedAt, time.Now()))
	if len(result.Jobs) == 0 {
		return
	}
	shown := result.Jobs[:min(most, len(result.Jobs))]
	rows := make([][]string, len(shown))
	for i, job := range shown {
		rows[i] = []string{
			clean(job.JobID), cell(job.JobKind), cellOf(job.LeaseOwner), tries(job), leaseEnd(result, job), would(job),
		}
	}
	fmt.Fprintln(out)
	printTable(out, []string{"JOB", "KIND", "OWNER", "FAILED TRIES", "LEASE ENDED", "WOULD"}, rows)
	if more := all - len(shown); more > 0 {
		fmt.Fprintf(out, "... and %d more.\n", more)
	}
}

func leases(n int) string { return count(n, "stale lease", "stale leases") }

func tries(job reaper.Job) string { return fmt.Sprintf("%d of %d", job.Attempts, job.MaxAttempts) }

func leaseEnd(result *reaper.DryRunResult, job reaper.Job) string {
	return moment(job.LeaseUntil, result.EvaluatedAt)
}

func would(job reaper.Job) string {
	if job.WouldAction == reaper.WouldMove {
		return "move"
	}
	return "reset"
}
