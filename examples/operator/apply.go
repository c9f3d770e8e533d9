package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// previewLines is how many jobs a question shows.
const previewLines = 15

// applying holds the flags of apply.
type applying struct {
	*tool

	limit, maxStale int
	plan            string
}

func (t *tool) applyCommand() *cobra.Command {
	a := &applying{tool: t}
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Reset or move jobs with stale leases, or those of a plan",
		Long: `Reset or move the jobs with the oldest stale leases, in one transaction, if the
gates are open. Without --yes it shows the jobs first and asks. Then it reaps
only these jobs, each only if it has not changed.

With --plan it reaps only the jobs of a file from operator plan, and lists those
that have changed since.`,
		Args: cobra.NoArgs,
		RunE: t.changes(func(ctx context.Context, _ []string) error { return a.run(ctx) }),
	}
	cmd.Flags().IntVar(&a.limit, "limit", applyLimit, "reap at most so many jobs")
	cmd.Flags().IntVar(&a.maxStale, "max-stale", 0, "refuse when more leases than this are stale (default: no maximum)")
	cmd.Flags().StringVar(&a.plan, "plan", "", "reap the jobs of this plan; - reads it from stdin")
	cmd.MarkFlagsMutuallyExclusive("plan", "limit")
	cmd.MarkFlagsMutuallyExclusive("plan", "max-stale")
	return t.addScope(cmd)
}

func (a *applying) run(ctx context.Context) error {
	if a.limit < 1 || a.maxStale < 0 {
		return misused("--limit is below 1, or --max-stale below 0")
	}
	r, err := a.reaper(func(cfg *reaper.Config) { cfg.MaxStale = a.maxStale })
	if err != nil {
		return err
	}
	switch {
	case a.plan != "":
		plan, err := a.readPlan(a.plan)
		if err != nil {
			return err
		}
		return a.reviewed(ctx, r, plan)
	case a.yes:
		return a.report(r.Apply(ctx, a.actor, a.limit))
	}
	plan, err := r.DryRun(ctx, a.limit)
	if err != nil {
		return err
	}
	if a.maxStale > 0 && plan.StaleLeaseCount > a.maxStale {
		return a.report(&reaper.ApplyResult{Refused: true, Reason: reaper.ReasonMaxStaleExceeded}, nil)
	}
	return a.reviewed(ctx, r, plan)
}

// reviewed shows a plan, asks, and applies exactly it.
func (a *applying) reviewed(ctx context.Context, r *reaper.Reaper, plan *reaper.DryRunResult) error {
	if !a.yes && len(plan.Jobs) > 0 {
		reason, err := a.closed(ctx)
		if reason != "" || err != nil {
			return a.report(&reaper.ApplyResult{Refused: true, Reason: reason}, err)
		}
		printPlan(a.errs, plan)
		if err := a.confirm(ctx, "Reap "+these(len(plan.Jobs))+"?"); err != nil {
			return err
		}
	}
	return a.report(r.ApplyPlan(ctx, a.actor, plan))
}

func these(jobs int) string {
	if jobs == 1 {
		return "this job"
	}
	return fmt.Sprintf("these %d jobs", jobs)
}

// closed returns why an apply would be refused, or "", before anybody is asked.
// The apply asks the gates again, and holds them.
func (t *tool) closed(ctx context.Context) (reason string, err error) {
	err = t.inReadOnly(ctx, func(tx pgx.Tx) error {
		values, err := t.queue.gates().ReadUnlocked(ctx, tx, gates.Keys())
		if err != nil {
			return err
		}
		var now time.Time
		if err := tx.QueryRow(ctx, "select now()").Scan(&now); err != nil {
			return err
		}
		reason, err = values.Refusal(now)
		return err
	})
	return reason, err
}

// report prints what an apply did. Rejected jobs make an error.
func (a *applying) report(result *reaper.ApplyResult, err error) error {
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(result)
	} else if !result.Refused {
		printApply(a.out, result)
	}
	return errors.Join(err, refused(result.Refused, result.Reason), turnedAway(result.FailedCount))
}

func turnedAway(failed int) error {
	if failed == 0 {
		return nil
	}
	if failed == 1 {
		return errors.New("1 job was rejected and left unchanged")
	}
	return fmt.Errorf("%d jobs were rejected and left unchanged", failed)
}
