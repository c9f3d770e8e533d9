package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// printedJobs is how many jobs a result lists for people. JSON has them all.
const printedJobs = 20

// printPlan shows what will happen, for a question.
func printPlan(out io.Writer, plan *reaper.DryRunResult) {
	moves := 0
	for _, job := range plan.Jobs {
		if job.WouldAction == reaper.WouldMove {
			moves++
		}
	}
	printStale(out, plan, previewLines, len(plan.Jobs))
	fmt.Fprintf(out, "\nThis resets %s and moves %s to the dead letters.\n",
		count(len(plan.Jobs)-moves, "job", "jobs"), count(moves, "job", "jobs"))
}

// printApply shows what an apply did.
func printApply(out io.Writer, result *reaper.ApplyResult) {
	fmt.Fprintf(out, "Reset %d, moved %d to the dead letters.\n", result.ResetCount, result.DeadLetterCount)
	list(out, []string{"JOB", "KIND", "FAILED TRIES", "NOW"}, result.Actions, func(a reaper.Action) []string {
		return []string{clean(a.JobID), cell(a.JobKind), strconv.Itoa(a.Attempts), became(a)}
	})
	list(out, []string{"SKIPPED JOB", "REASON", "WHICH MEANS"}, result.Skipped, func(s reaper.Skip) []string {
		return []string{clean(s.JobID), s.Reason, meaning(s.Reason)}
	})
	list(out, []string{"REJECTED JOB", "SQLSTATE", "ERROR"}, result.Failures, func(f reaper.Failure) []string {
		return []string{clean(f.JobID), cell(f.SQLState), clean(f.Error)}
	})
}

// list prints a table, if there is something for it, of bounded length.
func list[T any](out io.Writer, header []string, all []T, row func(T) []string) {
	if len(all) == 0 {
		return
	}
	shown := all[:min(printedJobs, len(all))]
	rows := make([][]string, len(shown))
	for i, one := range shown {
		rows[i] = row(one)
	}
	fmt.Fprintln(out)
	printTable(out, header, rows)
	if more := len(all) - len(shown); more > 0 {
		fmt.Fprintf(out, "... and %d more; --json lists them all.\n", more)
	}
}

func became(a reaper.Action) string {
	if a.Action == reaper.ActionMoved {
		return "dead letter " + letterID(a.DeadLetter)
	}
	began := a.ScheduledAt.Add(-time.Duration(min(a.BackoffSec, 1<<32)) * time.Second)
	return "waits until " + moment(a.ScheduledAt, began)
}

// letterID is the dead letter's id, where the mover says it.
func letterID(receipt *deadletter.Receipt) string {
	var document struct {
		ID any `json:"dead_letter_id"`
	}
	if json.Unmarshal(receipt.Document, &document) != nil || document.ID == nil {
		return "stored"
	}
	return clean(fmt.Sprint(document.ID))
}

// meaning explains why a job of a plan was skipped.
func meaning(reason string) string {
	switch reason {
	case reaper.SkipGone:
		return "there is no such job any more"
	case reaper.SkipRenewed:
		return "its worker lives and has renewed the lease"
	case reaper.SkipClaimed:
		return "a worker has claimed it since"
	case reaper.SkipFinished:
		return "it is not leased any more"
	case reaper.SkipReaped:
		return "another reaper was faster"
	case reaper.SkipLocked:
		return "another transaction has locked the row"
	case reaper.SkipChanged:
		return "its attempts have changed, or whether it is reset or moved"
	case reaper.SkipNotStale:
		return "its lease is not stale"
	}
	return ""
}
