package interleave_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// results: what a participant heard is what is stored.
func (h *history) results() []string {
	var faults []string
	for who, o := range h.outcomes {
		var fault string
		switch {
		case o.err != nil && !h.cut(who):
			fault = "has failed: " + o.err.Error()
		case o.unknown(): // whole or not at all: see moves, and one transaction is one
			fault = h.whole(who, o)
		case o.rolledBack:
			fault = differ("its transaction was rolled back", nil, h.stored(who))
		case o.apply != nil:
			fault = differ("its result", reported(o.apply), h.stored(who))
		case o.drain != nil:
			fault = h.drained(who, o.drain)
		case o.redrive != nil:
			fault = differ("its result", revived(o.redrive), ids(h.by(who, (*change).revives)))
		case o.purge != nil:
			fault = h.purged(who, o.purge)
		case o.role == works:
			fault = h.worked(who, o)
		case o.err != nil && o.role != operates && len(h.commits(who)) > 0:
			fault = "it has failed, and has committed"
		}
		if fault != "" {
			faults = append(faults, fmt.Sprintf("%c: %s", 'a'+who, fault))
		}
	}
	return faults
}

// cut reports whether a participant's connection was lost.
func (h *history) cut(who int) bool {
	for _, action := range h.record.Schedule {
		if action.Who == who && action.Loss != 0 {
			return true
		}
	}
	return false
}

// whole is the fault of an unknown outcome of which some was committed and some was not.
// A drain's batches before the last one are in its result.
func (h *history) whole(who int, o *outcome) string {
	known := 0
	if o.drain != nil {
		known = o.drain.Batches
	}
	if n := len(h.commits(who)); n > known+1 {
		return fmt.Sprintf("its outcome is unknown, and it has committed %d times", n)
	}
	return ""
}

// differ is the fault of two lists that are not the same.
func differ(what string, heard, stored []string) string {
	slices.Sort(heard)
	slices.Sort(stored)
	if slices.Equal(heard, stored) {
		return ""
	}
	return fmt.Sprintf("%s says [%s], stored is [%s]", what, strings.Join(heard, ", "), strings.Join(stored, ", "))
}

// reported are the actions of a result.
func reported(result *reaper.ApplyResult) []string {
	var actions []string
	for _, a := range result.Actions {
		what := fmt.Sprintf("%s %s attempts %d", a.Action, a.JobID, a.Attempts)
		if a.DeadLetter != nil {
			what += " letter " + letterOf(a.DeadLetter)
		} else {
			what += " at " + a.ScheduledAt.UTC().String()
		}
		actions = append(actions, what)
	}
	return actions
}

func letterOf(receipt *deadletter.Receipt) string {
	var document struct {
		DeadLetterID string `json:"dead_letter_id"`
	}
	_ = json.Unmarshal(receipt.Document, &document)
	return document.DeadLetterID
}

// stored are the actions that a participant has committed.
func (h *history) stored(who int) []string {
	var actions []string
	for _, c := range h.by(who, (*change).reaps) {
		action, rest := reaper.ActionReset, " at "+c.new.ScheduledAt.UTC().String()
		if c.moves() {
			action, rest = reaper.ActionMoved, " letter "+h.letter(c)
		}
		actions = append(actions, fmt.Sprintf("%s %s attempts %d", action, c.new.JobID, c.new.Attempts)+rest)
	}
	return actions
}

// letter is the id of the letter that was stored for a moved job.
func (h *history) letter(moved *change) string {
	for _, c := range h.changes {
		if c.xid == moved.xid && c.place == "job_dead_letter" && c.old == nil && c.new.Job.id() == moved.id() {
			return c.new.DeadLetterID
		}
	}
	return "none"
}

func (h *history) drained(who int, result *reaper.DrainResult) string {
	resets, moves := len(h.by(who, (*change).resets)), len(h.by(who, (*change).moves))
	if resets != result.ResetCount || moves != result.DeadLetterCount {
		return fmt.Sprintf("its result says %d resets and %d moves, stored are %d and %d",
			result.ResetCount, result.DeadLetterCount, resets, moves)
	}
	return ""
}

func revived(result *deadletter.RedriveResult) []string {
	var jobs []string
	for _, job := range result.Redriven {
		jobs = append(jobs, job.JobID)
	}
	return jobs
}

func ids(changes []*change) []string {
	var jobs []string
	for _, c := range changes {
		jobs = append(jobs, c.new.JobID)
	}
	return jobs
}

func (h *history) purged(who int, result *deadletter.PurgeResult) string {
	gone := func(place string) int {
		return len(h.by(who, func(c *change) bool { return c.place == place && c.new == nil }))
	}
	letters, jobs := gone("job_dead_letter"), gone("job_queue")
	if letters != result.UnredrivenCount+result.RedrivenCount || jobs != result.JobCount {
		return fmt.Sprintf("its result says %d letters and %d jobs, gone are %d and %d",
			result.UnredrivenCount+result.RedrivenCount, result.JobCount, letters, jobs)
	}
	return ""
}

// worked is the fault of a worker that heard of another number of changes than were made.
// After an error it knows nothing.
func (h *history) worked(who int, o *outcome) string {
	n := 0
	for _, commit := range h.commits(who) {
		n += len(commit)
	}
	if o.err == nil && int64(n) != o.changed {
		return fmt.Sprintf("it heard of %d changes, stored are %d", o.changed, n)
	}
	return ""
}
