package interleave_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lease-governance/leasereaper/gates"
)

// faults are what is wrong with an outcome.
func (h *history) faults() []string {
	return slices.Concat(
		h.leases(), h.attempts(), h.fence(), h.results(), h.rejections(), h.moves(), h.redrives(), h.waits(), h.backlog(),
	)
}

// leases: each is reaped once, and none that is live at the reaper's now().
func (h *history) leases() []string {
	var faults []string
	reaps := map[string]int{}
	for _, c := range h.changes {
		if !c.reaps() {
			continue
		}
		lease := c.id() + " of " + c.old.LeaseOwner
		reaps[lease]++
		if reaps[lease] > 1 {
			faults = append(faults, "a lease was reaped twice: "+lease)
		}
		if !c.old.LeaseUntil.Before(c.at) {
			faults = append(faults, "a live lease was reaped: "+lease)
		}
	}
	return faults
}

// attempts: they have grown by exactly what was committed since the job was last revived.
func (h *history) attempts() []string {
	var faults []string
	reaped, since := map[string]int{}, map[string]int{}
	for n, attempts := range h.scenario.attempts {
		since[strconv.Itoa(n)] = attempts
	}
	for _, c := range h.changes {
		switch {
		case c.revives():
			reaped[c.id()], since[c.id()] = 0, 0
		case c.reaps():
			reaped[c.id()]++
		}
	}
	for _, job := range h.jobs {
		if id := job.id(); job.Attempts != since[id]+reaped[id] {
			faults = append(faults, fmt.Sprintf("job %s has %d attempts, and had %d before %d reaps",
				id, job.Attempts, since[id], reaped[id]))
		}
	}
	return faults
}

// fence: an apply commits only while the settings that are committed let it.
func (h *history) fence() []string {
	var faults []string
	settings := gates.Values{
		gates.SubstrateEnabled: "true", gates.ReaperEnabled: "true", gates.DryRunOnly: "false",
	}
	for key, value := range h.scenario.settings {
		settings[key] = value
	}
	next := make([]int, len(h.outcomes))
	for _, e := range h.record.Exchanges {
		commits := h.commits(e.Who)
		if !e.Committed || next[e.Who] >= len(commits) {
			continue
		}
		changes := commits[next[e.Who]]
		next[e.Who]++
		switch h.outcomes[e.Who].role {
		case operates:
			apply(settings, changes)
		case reaps:
			if reason, err := settings.Refusal(changes[0].at); reason != "" || err != nil {
				faults = append(faults, fmt.Sprintf("%s has committed with a closed gate: %s", e.Action, reason))
			}
		}
	}
	return faults
}

// apply changes settings as an operator did.
func apply(settings gates.Values, changes []*change) {
	for _, c := range changes {
		switch {
		case c.place != "queue_config":
		case c.new == nil:
			delete(settings, c.old.Key)
		default:
			settings[c.new.Key] = c.new.Value
		}
	}
}

// waits: no apply waits for another one or for a worker.
func (h *history) waits() []string {
	var faults []string
	for _, e := range h.record.Exchanges {
		if e.Waited && h.outcomes[e.Who].role == reaps && !h.scenario.waits {
			faults = append(faults, fmt.Sprintf("%s has waited for a row that someone else has locked: %v", e.Action, e.Statements))
		}
	}
	return faults
}

// backlog: when drains have gone through it whole, nothing is left of it.
func (h *history) backlog() []string {
	if h.record.Schedule.Cuts() || !slices.ContainsFunc(h.outcomes, func(o *outcome) bool { return o.drain != nil }) {
		return nil
	}
	var faults []string
	for _, job := range h.jobs {
		if job.State == "leased" && job.LeaseUntil.Before(time.Now()) {
			faults = append(faults, "the drains have left a stale lease: "+job.id())
		}
	}
	return faults
}
