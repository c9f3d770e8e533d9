package report

import (
	"fmt"
	"math"

	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

// figure writes three digits that count, and whole numbers whole.
func figure(value float64) string {
	switch {
	case value == math.Trunc(value) && value < 1000:
		return fmt.Sprintf("%.0f", value)
	case value >= 1000:
		return thousands(int64(math.Round(value)))
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	case value >= 1:
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.3f", value)
}

// thousands writes a large number with a comma.
func thousands(value int64) string {
	text := fmt.Sprintf("%d", value)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// with adds a unit to a figure.
func with(unit, figure string) string {
	switch unit {
	case "":
		return figure
	case "x":
		return figure + "x"
	}
	return figure + " " + unit
}

// middle is the range of a sample's middle half, where there is one.
func middle(s stat.Spread) string {
	if s.Low == s.High {
		return ""
	}
	return figure(s.Low) + " - " + figure(s.High)
}

// found is the figure of a finding.
func found(f suite.Finding) string {
	if f.NotRun != "" {
		return "-"
	}
	return with(f.Unit, figure(f.Value.Median))
}

func goal(f suite.Finding) string {
	switch {
	case f.Goal == nil:
		return ""
	case f.Goal.Most:
		return "at most " + with(f.Unit, fmt.Sprintf("%g", f.Goal.Bound))
	}
	return "at least " + with(f.Unit, fmt.Sprintf("%g", f.Goal.Bound))
}

func verdict(f suite.Finding) string {
	switch {
	case f.NotRun != "":
		return "not run"
	case f.Goal == nil:
		return ""
	case f.Reached():
		return "reached"
	}
	return "RED"
}
