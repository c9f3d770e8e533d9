package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

const (
	actor = "quickstart" // says who reaps; a service uses its own name
	limit = 10           // the most jobs that one call handles
)

// story shows the steps. What it writes has a tab between two columns.
type story struct {
	out    *tabwriter.Writer
	pool   *pgxpool.Pool
	reaper *reaper.Reaper
}

// tell fills the queue and shows the steps one after the other.
func tell(ctx context.Context, out io.Writer, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, reaper.Schema); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	if _, err := pool.Exec(ctx, sqlFill); err != nil {
		return fmt.Errorf("insert jobs: %w", err)
	}
	r, err := reaper.New(pool, reaper.Config{})
	if err != nil {
		return err
	}
	s := &story{out: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), pool: pool, reaper: r}
	steps := []struct {
		title, line string
		show        func(context.Context) error
	}{
		{"1. The queue", "worker-1 and worker-2 died: nobody renews their leases or gives the jobs back.", s.jobs},
		{"2. The dry run", "What an apply would do, oldest lease first. It only reads and needs no gate.", s.dryRun},
		{"3. The refusals", "An apply needs an actor and three open gates. An operator opens them.", s.refusals},
		{"4. The apply", "The operator sets " + gates.DryRunOnly + "=false, and the apply goes ahead.", s.apply},
		{"5. The queue afterwards", "Two jobs wait for another try, one is dead. The others are as they were.", s.jobs},
		{"6. The dead letters", "The job whose attempts were used up, kept whole to be looked at.", s.deadLetters},
	}
	for _, step := range steps {
		fmt.Fprintf(out, "\n%s\n%s\n\n", step.title, step.line)
		if err := step.show(ctx); err != nil {
			return err
		}
		if err := s.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) dryRun(ctx context.Context) error {
	result, err := s.reaper.DryRun(ctx, limit)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "stale leases: %d\nKIND\tATTEMPTS\tOWNER\tCLOCK\tWOULD\n", result.StaleLeaseCount)
	for _, job := range result.Jobs {
		fmt.Fprintf(s.out, "%s\t%d of %d\t%s\toverdue %ds\t%s\n",
			job.JobKind, job.Attempts, job.MaxAttempts, *job.LeaseOwner, job.OverdueSeconds, job.WouldAction)
	}
	return nil
}

// refusals applies without an actor, then opens one gate after the other. Each
// try but the one after the last gate is refused.
func (s *story) refusals(ctx context.Context) error {
	fmt.Fprintln(s.out, "WHEN\tREFUSED, BECAUSE")
	tries := []struct{ when, actor, gate string }{
		{"no actor is given", "", ""},
		{"no gate is set", actor, ""},
		{"operator sets " + gates.SubstrateEnabled + "=true", actor, gates.SubstrateEnabled},
		{"operator sets " + gates.ReaperEnabled + "=true", actor, gates.ReaperEnabled},
	}
	for _, try := range tries {
		if try.gate != "" {
			if err := (gates.Table{}).Set(ctx, s.pool, "operator", try.gate, "true"); err != nil {
				return err
			}
		}
		result, err := s.reaper.Apply(ctx, try.actor, limit)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%s\t%s\n", try.when, result.Reason)
	}
	return nil
}

func (s *story) apply(ctx context.Context) error {
	if err := (gates.Table{}).Set(ctx, s.pool, "operator", gates.DryRunOnly, "false"); err != nil {
		return err
	}
	result, err := s.reaper.Apply(ctx, actor, limit)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(s.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

func (s *story) jobs(ctx context.Context) error {
	return s.table(ctx, "KIND\tSTATE\tATTEMPTS\tOWNER\tCLOCK\tLAST ERROR", sqlJobs)
}

func (s *story) deadLetters(ctx context.Context) error {
	return s.table(ctx, "KIND\tATTEMPTS\tMOVED BY\tFINAL ERROR", sqlDeadLetters)
}

// table shows the rows of a query whose one column is a line.
func (s *story) table(ctx context.Context, header, query string) error {
	rows, err := s.pool.Query(ctx, query)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, header)
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		fmt.Fprintln(s.out, line)
	}
	return rows.Err()
}
