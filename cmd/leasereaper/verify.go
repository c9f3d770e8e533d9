package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/reaper"
)

// verifying holds the flags of verify.
type verifying struct {
	*tool

	rehearse, sql bool
}

func (t *tool) verifyCommand() *cobra.Command {
	v := &verifying{tool: t}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Look for what would keep a reaper from working",
		Long: `Look at the tables, the index, the privileges and the settings, with the role
and the connection that a reaper would use, and say what is missing and which
SQL removes it. Warnings alone are no error.

With --rehearse it also runs a reset and a move on a real row, and rolls them
back. That finds what triggers, checks and foreign keys reject.`,
		Args: cobra.NoArgs,
		RunE: t.reads(func(ctx context.Context, _ []string) error { return v.run(ctx) }),
	}
	cmd.Flags().BoolVar(&v.rehearse, "rehearse", false, "also try a reset and a move, and roll them back")
	cmd.Flags().BoolVar(&v.sql, "sql", false, "print only SQL that psql takes, with the problems as comments")
	return cmd
}

func (v *verifying) run(ctx context.Context) error {
	if v.sql && v.json {
		return misused("--sql and --json are two forms; choose one")
	}
	r, err := v.reaper(nil)
	if err != nil {
		return err
	}
	report, err := r.Verify(ctx)
	if err != nil {
		return err
	}
	var unrehearsed error
	if v.rehearse {
		unrehearsed = addRehearsal(ctx, r, report)
	}
	return errors.Join(v.printReport(report), unrehearsed, faults(report))
}

// addRehearsal adds what a rehearsal finds to a report, worst first.
func addRehearsal(ctx context.Context, r *reaper.Reaper, report *reaper.Report) error {
	rehearsed, err := r.Rehearse(ctx)
	if err != nil {
		return err
	}
	report.Problems = append(report.Problems, rehearsed.Problems...)
	slices.SortStableFunc(report.Problems, func(a, b reaper.Problem) int { return cmp.Compare(a.Severity, b.Severity) })
	return nil
}

// faults is an error if a problem is more than a warning.
func faults(report *reaper.Report) error {
	found := 0
	for _, problem := range report.Problems {
		if problem.Severity == reaper.SeverityError {
			found++
		}
	}
	if found > 0 {
		return fmt.Errorf("%s to solve before a reaper works", count(found, "problem", "problems"))
	}
	return nil
}

func (v *verifying) printReport(report *reaper.Report) error {
	switch {
	case v.json:
		return v.printJSON(report)
	case v.sql:
		printFixes(v.out, report)
		return nil
	}
	fmt.Fprint(v.out, cleanLines(report.String()))
	return nil
}

// printFixes prints the SQL of a report for psql. What is not SQL is a comment.
func printFixes(out io.Writer, report *reaper.Report) {
	for i, p := range report.Problems {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, "--", clean(fmt.Sprintf("%s %s: %s: %s", p.Severity, p.Code, p.Object, p.Message)))
		if fix := strings.TrimSpace(p.Fix); fix != "" {
			fmt.Fprintln(out, onScreen(out, strings.TrimSuffix(fix, ";")+";"))
		} else {
			fmt.Fprintln(out, "-- no SQL solves this")
		}
	}
}

// onScreen is a text of several lines. For a terminal it is made safe; a file or psql gets it
// as it is.
func onScreen(out io.Writer, text string) string {
	if isTerminal(out) {
		return cleanLines(text)
	}
	return text
}

// cleanLines is a text of several lines that is safe for a terminal.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = clean(line)
	}
	return strings.Join(lines, "\n")
}
