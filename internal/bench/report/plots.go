package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lease-governance/leasereaper/internal/bench/plot"
	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

// drawing says what becomes of the series of a scenario.
type drawing struct {
	scenario string
	file     string
	title    string
	x, y     string // titles of the axes
}

var drawings = []drawing{
	{
		scenario: "batch-sizes",
		file:     "throughput-by-batch.svg",
		title:    "Throughput by batch size",
		x:        "jobs in a batch",
		y:        "jobs a second",
	},
	{
		scenario: "backlogs",
		file:     "latency-by-backlog.svg",
		title:    "Time of one apply of 100 jobs by backlog",
		x:        "stale leases in a table of 1,000,000 rows",
		y:        "milliseconds",
	},
}

// Plots writes the plots of what was measured as SVG files into a folder. A
// scenario that was not run has none.
func Plots(folder string, result suite.Result) error {
	for _, d := range drawings {
		lines := linesOf(d.scenario, result.Series)
		if len(lines) == 0 {
			continue
		}
		if err := d.write(folder, lines); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	return nil
}

func (d drawing) write(folder string, lines []plot.Line) error {
	var svg bytes.Buffer
	if err := plot.Draw(&svg, plot.Chart{Title: d.title, X: d.x, Y: d.y, Lines: lines}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, d.file), svg.Bytes(), 0o644)
}

func linesOf(scenario string, all []suite.Series) []plot.Line {
	var lines []plot.Line
	for _, series := range all {
		if series.Scenario == scenario {
			lines = append(lines, lineOf(series))
		}
	}
	return lines
}

func lineOf(series suite.Series) plot.Line {
	line := plot.Line{Name: series.Contender}
	for _, point := range series.Points {
		line.Points = append(line.Points, plot.Point{
			X: float64(point.Size), Y: point.Value.Median, Low: point.Value.Low, High: point.Value.High,
		})
	}
	return line
}
