package load

import (
	"fmt"
	"slices"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// Verdict says whether the machine was quiet at every look.
func (m *Machine) Verdict() string {
	switch {
	case m.err != nil:
		return fmt.Sprintf("unknown: %v", m.err)
	case len(m.busy) == 0:
		return "unknown: nobody looked"
	}
	answer, worst := "yes", slices.Max(m.busy)
	if worst > quiet {
		answer = "no"
	}
	return fmt.Sprintf("%s: other work took at most %.0f%% of the processors", answer, 100*worst)
}

// Settings returns the lines that a report shows.
func (m *Machine) Settings() []bed.Setting {
	list := []bed.Setting{{Name: "was the machine quiet, before the run and in its pauses", Value: m.Verdict()}}
	if len(m.busy) == 0 {
		return list
	}
	last := len(m.busy) - 1
	return append(list,
		bed.Setting{Name: "load before the run", Value: m.at(0)},
		bed.Setting{Name: "load after the run, whose own work is in the average", Value: m.at(last)},
	)
}

// at is what a look saw.
func (m *Machine) at(look int) string {
	return fmt.Sprintf("%.0f%% of the processors, average %s", 100*m.busy[look], m.average[look])
}
