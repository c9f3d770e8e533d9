// Package report shows what the benchmarks found: on a terminal, as JSON, and in
// the project's documentation.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/soak"
	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

// Report is what a run of the benchmarks found, and where.
type Report struct {
	Environment []bed.Setting `json:"environment"`
	Result      suite.Result  `json:"result"`
	Soak        *soak.Result  `json:"soak,omitempty"` // nil: there was none
}

// Print writes where it was measured, the goals, and what they were measured from,
// for people who look at a terminal.
func (r Report) Print(out io.Writer) error {
	if r.Soak != nil {
		return printSoak(out, r.Soak)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, setting := range r.Environment {
		row(w, setting.Name, setting.Value)
	}
	row(w)
	row(w, "scenario", "what", "median", "middle half", "goal", "")
	for _, f := range r.Result.Findings {
		row(w, f.Scenario, f.What, found(f), middle(f.Value), goal(f), verdict(f))
	}
	row(w)
	row(w, "scenario", "contender", "median", "middle half", "")
	for _, m := range r.Result.Measures {
		row(w, m.Scenario, m.Contender, with(m.Unit, figure(m.Value.Median)), middle(m.Value), "")
	}
	for _, f := range r.Result.Findings {
		if f.NotRun != "" {
			fmt.Fprintf(w, "\n%s: %s: %s\n", f.Scenario, f.What, f.NotRun)
		}
	}
	return w.Flush()
}

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

// Write writes the report into a file, as JSON.
func (r Report) Write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Read reads what Write wrote.
func Read(path string) (r Report, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, fmt.Errorf("report: %q: %w", path, err)
	}
	return r, nil
}
