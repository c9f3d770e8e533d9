package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/reaper"
)

func (t *tool) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Look for what would keep a reaper from working",
		Long: `Look at the tables, the index, the privileges and the settings, with the role
and the connection that a reaper would use, and say what is missing and which
SQL removes it. Warnings alone are no error.`,
		Args: cobra.NoArgs,
		RunE: t.reads(func(ctx context.Context, _ []string) error { return t.verify(ctx) }),
	}
}

func (t *tool) verify(ctx context.Context) error {
	r, err := t.reaper(nil)
	if err != nil {
		return err
	}
	report, err := r.Verify(ctx)
	if err != nil {
		return err
	}
	if err := t.printReport(report); err != nil {
		return err
	}
	faults := 0
	for _, problem := range report.Problems {
		if problem.Severity == reaper.SeverityError {
			faults++
		}
	}
	if faults > 0 {
		return fmt.Errorf("%s to solve before a reaper works", count(faults, "problem", "problems"))
	}
	return nil
}

func (t *tool) printReport(report *reaper.Report) error {
	if t.json {
		return t.printJSON(report)
	}
	for line := range strings.Lines(report.String()) {
		fmt.Fprintln(t.out, clean(strings.TrimRight(line, "\n")))
	}
	return nil
}
