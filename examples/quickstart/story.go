package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

const (
	// actor says who reaps. A service uses its own name.
	actor = "quickstart"

	// limit is the most jobs that one call handles.
	limit = 10
)

// story shows each step under a heading of its own.
type story struct {
	out    io.Writer
	queue  queue
	reaper *reaper.Reaper
}

func (s *story) before(ctx context.Context) error {
	heading(s.out, "1. The queue",
		"worker-1 and worker-2 died: their leases are overdue, and nobody gives the jobs back.")
	return s.printQueue(ctx)
}

func (s *story) dryRun(ctx context.Context) error {
	heading(s.out, "2. The dry run",
		"What an apply would do, oldest lease first. It only reads, and needs no gate open.")
	result, err := s.reaper.DryRun(ctx, limit)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "stale leases: %d\n", result.StaleLeaseCount)
	return printStale(s.out, result.Jobs)
}

// refusals applies without an actor, then opens one gate after the other. Each
// try but the one after the last gate is refused.
func (s *story) refusals(ctx context.Context) error {
	heading(s.out, "3. The refusals",
		"An apply needs an actor and three open gates. An operator opens them in queue_config.")
	tries := []struct{ when, actor, key, value string }{
		{when: "no actor is given"},
		{when: "no gate is set", actor: actor},
		{actor: actor, key: gates.SubstrateEnabled, value: "true"},
		{actor: actor, key: gates.ReaperEnabled, value: "true"},
	}
	lines := make([][]string, 0, len(tries))
	for _, try := range tries {
		when := try.when
		if try.key != "" {
			when = "operator sets " + try.key + "=" + try.value
			if err := s.queue.set(ctx, try.key, try.value); err != nil {
				return err
			}
		}
		result, err := s.reaper.Apply(ctx, try.actor, limit)
		if err != nil {
			return err
		}
		lines = append(lines, []string{when, result.Reason})
	}
	return table(s.out, []string{"WHEN", "REFUSED, BECAUSE"}, lines)
}

func (s *story) apply(ctx context.Context) error {
	heading(s.out, "4. The apply",
		"The operator sets "+gates.DryRunOnly+"=false, and the apply goes ahead.")
	if err := s.queue.set(ctx, gates.DryRunOnly, "false"); err != nil {
		return err
	}
	result, err := s.reaper.Apply(ctx, actor, limit)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, string(text))
	return err
}

func (s *story) after(ctx context.Context) error {
	heading(s.out, "5. The queue afterwards",
		"Two jobs wait for another try, one is dead. Whatever was not stale is as it was.")
	return s.printQueue(ctx)
}

func (s *story) deadLetters(ctx context.Context) error {
	heading(s.out, "6. The dead letters",
		"The job whose attempts were used up, kept whole for somebody to look at.")
	letters, err := s.queue.deadLetters(ctx)
	if err != nil {
		return err
	}
	return printDeadLetters(s.out, letters)
}

func (s *story) printQueue(ctx context.Context) error {
	jobs, err := s.queue.jobs(ctx)
	if err != nil {
		return err
	}
	return printJobs(s.out, jobs)
}
