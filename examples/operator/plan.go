package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/reaper"
)

func (t *tool) planCommand() *cobra.Command {
	var limit int
	var file string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Write a dry run for review, which apply --plan then applies",
		Long: `Write a dry run as JSON, to a file or to stdout. Somebody reviews it, and may
remove jobs from it. Then operator apply --plan FILE reaps only these jobs, each
only if it has not changed.`,
		Args: cobra.NoArgs,
		RunE: t.reads(func(ctx context.Context, _ []string) error { return t.plan(ctx, file, limit) }),
	}
	cmd.Flags().StringVarP(&file, "output", "o", "-", "the file to write, - for stdout")
	cmd.Flags().IntVar(&limit, "limit", applyLimit, "plan at most so many jobs")
	return t.addScope(cmd)
}

func (t *tool) plan(ctx context.Context, file string, limit int) error {
	result, err := t.look(ctx, limit)
	if err != nil {
		return err
	}
	if file == "-" {
		return t.printJSON(result)
	}
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	const readable = 0o644
	if err := os.WriteFile(file, append(text, '\n'), readable); err != nil {
		return err
	}
	fmt.Fprintf(t.errs, "%s of %s planned in %s; to apply it: operator apply --plan %s\n",
		count(len(result.Jobs), "job", "jobs"), leases(result.StaleLeaseCount), file, file)
	return nil
}

// readPlan reads a plan from a file, - for stdin.
func (t *tool) readPlan(file string) (*reaper.DryRunResult, error) {
	text, err := t.readFile(file)
	if err != nil {
		return nil, err
	}
	var fields struct{ Jobs *json.RawMessage }
	plan := &reaper.DryRunResult{}
	if err := errors.Join(json.Unmarshal(text, &fields), json.Unmarshal(text, plan)); err != nil {
		return nil, fmt.Errorf("%s is not a plan: %w", file, err)
	}
	if fields.Jobs == nil { // any JSON object would do, and apply nothing
		return nil, fmt.Errorf("%s is not a plan: it has no jobs", file)
	}
	return plan, nil
}

func (t *tool) readFile(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(t.in)
	}
	return os.ReadFile(file)
}
