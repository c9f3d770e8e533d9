package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

// page is what has the generated parts.
const page = "performance.md"

// Docs writes the plots into a folder, and the tables into its performance.md:
// each between a pair of comments that name it, and nothing else there changes. A
// table of which nothing was measured stays as it is.
func (r Report) Docs(folder string) error {
	if err := Plots(folder, r.Result); err != nil {
		return err
	}
	path := filepath.Join(folder, page)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated := string(text)
	for _, part := range r.parts() {
		if updated, err = replace(updated, part.name, part.text); err != nil {
			return fmt.Errorf("report: %q: %w", path, err)
		}
	}
	return os.WriteFile(path, []byte(updated), 0o644)
}

// part is a generated part of the page.
type part struct{ name, text string }

func (r Report) parts() []part {
	return []part{
		{"place", r.place()},
		{"goals", r.goals()},
		{"figures", r.figures()},
		{"anatomy", r.anatomy("anatomy")},
		{"anatomy-idle", r.anatomy("anatomy-idle")},
	}
}

// replace puts a text between the comments of its name.
func replace(page, name, text string) (string, error) {
	opening, closing := "<!-- bench "+name+" -->\n", "<!-- bench end -->"
	before, rest, ok := strings.Cut(page, opening)
	if !ok {
		return "", fmt.Errorf("there is no line %q", strings.TrimSpace(opening))
	}
	_, after, ok := strings.Cut(rest, closing)
	if !ok {
		return "", fmt.Errorf("there is no %q after %q", closing, strings.TrimSpace(opening))
	}
	if text == "" {
		return page, nil
	}
	return before + opening + text + closing + after, nil
}

// table writes a table, or nothing when it has no rows.
func table(rows [][]string, titles ...string) string {
	if len(rows) == 0 {
		return ""
	}
	var text strings.Builder
	for _, cells := range append([][]string{titles, dashes(len(titles))}, rows...) {
		text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return text.String()
}

func dashes(n int) []string {
	cells := make([]string, n)
	for i := range cells {
		cells[i] = "---"
	}
	return cells
}

func (r Report) place() string {
	var rows [][]string
	for _, setting := range r.Place {
		rows = append(rows, []string{setting.Name, setting.Value})
	}
	return table(rows, "what", "here")
}

func (r Report) goals() string {
	var rows [][]string
	for _, f := range r.Result.Findings {
		verdict := verdict(f)
		if verdict == "RED" {
			verdict = "**red**"
		}
		rows = append(rows, []string{about(f.Scenario), f.What, found(f), middle(f.Value), goal(f), verdict})
	}
	return table(rows, "scenario", "what", "median", "middle half", "goal", "")
}

func (r Report) figures() string {
	var rows [][]string
	for _, m := range r.Result.Measures {
		if !strings.HasPrefix(m.Scenario, "anatomy") {
			median := with(m.Unit, figure(m.Value.Median))
			rows = append(rows, []string{about(m.Scenario), m.Contender, median, middle(m.Value)})
		}
	}
	return table(rows, "scenario", "contender", "median", "middle half")
}

// anatomy adds to each step of a batch what share of its time that is.
func (r Report) anatomy(scenario string) string {
	var steps []suite.Measure
	total := 0.0
	for _, m := range r.Result.Measures {
		if m.Scenario == scenario {
			steps = append(steps, m)
			total += m.Value.Median
		}
	}
	var rows [][]string
	for _, m := range steps {
		share := fmt.Sprintf("%.0f%%", 100*m.Value.Median/total)
		rows = append(rows, []string{m.Contender, with(m.Unit, figure(m.Value.Median)), share})
	}
	return table(rows, "step", "median", "share")
}

// about says what a scenario is.
func about(name string) string {
	for _, scenario := range suite.All() {
		if scenario.Name == name {
			return scenario.About
		}
	}
	return name
}
