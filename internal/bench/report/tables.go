package report

import (
	"fmt"
	"strings"

	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

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

func (r Report) environment() string {
	var rows [][]string
	for _, setting := range r.Environment {
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

// sizes has a row for each size of a plot, and a column for each of its lines.
func (r Report) sizes(scenario, size, unit string) string {
	titles, rows := []string{size}, [][]string(nil)
	for _, series := range r.Result.Series {
		if series.Scenario != scenario {
			continue
		}
		titles = append(titles, series.Contender)
		for i, point := range series.Points {
			if len(rows) == i {
				rows = append(rows, []string{thousands(int64(point.Size))})
			}
			rows[i] = append(rows[i], with(unit, figure(point.Value.Median)))
		}
	}
	return table(rows, titles...)
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
