// Package report shows what the benchmarks found.
package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

// Print writes the goals, and then what they were measured from, for people who
// look at a terminal.
func Print(out io.Writer, result suite.Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row(w, "scenario", "what", "median", "quartiles", "goal", "")
	for _, f := range result.Findings {
		row(w, f.Scenario, f.What, median(f), quartiles(f.Value), goal(f.Goal), verdict(f))
	}
	row(w)
	row(w, "scenario", "contender", "median", "quartiles", "unit", "")
	for _, m := range result.Measures {
		row(w, m.Scenario, m.Contender, figure(m.Value.Median), quartiles(m.Value), m.Unit, "")
	}
	return w.Flush()
}

// median is the figure of a finding, or why there is none.
func median(f suite.Finding) string {
	if f.NotRun != "" {
		return "-"
	}
	return strings.TrimSpace(figure(f.Value.Median) + " " + f.Unit)
}

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

// figure writes three digits that count, and no exponent.
func figure(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	case value >= 1 || value == 0:
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.3f", value)
}

func quartiles(s stat.Spread) string {
	if s.Low == s.High {
		return ""
	}
	return figure(s.Low) + " - " + figure(s.High)
}

func goal(g *suite.Goal) string {
	switch {
	case g == nil:
		return ""
	case g.Most:
		return fmt.Sprintf("at most %g", g.Bound)
	}
	return fmt.Sprintf("at least %g", g.Bound)
}

func verdict(f suite.Finding) string {
	switch {
	case f.NotRun != "":
		return "not run: " + f.NotRun
	case f.Goal == nil:
		return ""
	case f.Reached():
		return "reached"
	}
	return "RED"
}
