// Quickstart shows the lease reaper at work: a small queue whose workers died, a dry
// run, the four ways an apply refuses, and an apply.
//
//	go run ./examples/quickstart
//
// It uses the PostgreSQL that DATABASE_URL names, or starts one. It works in a schema
// of its own and drops that at the end, also after an error or Ctrl-C.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

const (
	actor   = "quickstart"     // who reaps; a service uses its own name
	limit   = 10               // the most jobs that one call handles
	timeout = 10 * time.Second // bounds a connection attempt, and the clean-up
)

// sqlFill inserts jobs. The leases of worker-1 and worker-2 have expired.
const sqlFill = `
insert into job_queue (job_kind, state, attempts, max_attempts, lease_owner, lease_until, scheduled_at)
values
  ('send_invoice', 'leased', 0, 5, 'worker-1', now() - interval '90 s', now() - interval '5 min'),
  ('resize_image', 'leased', 2, 5, 'worker-1', now() - interval '75 s', now() - interval '5 min'),
  ('charge_card',  'leased', 4, 5, 'worker-2', now() - interval '60 s', now() - interval '5 min'),
  ('send_email',   'leased', 0, 3, 'worker-3', now() + interval '5 min', now() - interval '5 min'),
  ('build_report', 'ready',         0, 5, null, null, now()),
  ('sync_ledger',  'retry_waiting', 1, 5, null, null, now() + interval '2 min'),
  ('send_receipt', 'succeeded',     1, 5, null, null, now() - interval '1 h')`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)   // a second Ctrl-C does not wait for the clean-up
	signal.Ignore(syscall.SIGPIPE) // with a closed pipe, as behind head, a write returns an error

	if err := run(ctx, os.Stdout, os.Getenv("DATABASE_URL")); err != nil {
		// pgx's error has a line for each address that it tried.
		fmt.Fprintln(os.Stderr, "quickstart:", strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(1)
	}
}

// run shows all steps on out. An empty url means a temporary database.
func run(ctx context.Context, out io.Writer, url string) (err error) {
	if url != "" {
		config, err := pgxpool.ParseConfig(url)
		if err != nil { // it may quote a part of the password
			return errors.New("DATABASE_URL is not a PostgreSQL connection string")
		}
		return runIn(ctx, out, config)
	}
	fmt.Fprintln(out, "DATABASE_URL is not set: making a temporary database.")
	defer func() { err = errors.Join(err, pgtest.Shutdown()) }()
	database, err := pgtest.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	return runIn(ctx, out, database.Pool.Config())
}

// runIn works in a schema of its own, which is the only one on the search path.
func runIn(ctx context.Context, out io.Writer, config *pgxpool.Config) (err error) {
	schema := "leasereaper_quickstart_" + strings.ToLower(rand.Text()[:8])
	config.ConnConfig.RuntimeParams["search_path"] = schema
	config.ConnConfig.ConnectTimeout = timeout
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		_, dropped := pool.Exec(ctx, `drop schema if exists `+schema+` cascade`)
		err = errors.Join(err, dropped)
	}()
	fmt.Fprintln(out, "The lease reaper at work, in a schema of its own that is dropped at the end.")
	for _, sql := range []string{`create schema ` + schema, reaper.Schema, sqlFill} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return tell(ctx, out, pool)
}

// story shows the steps. out aligns the columns, which have a tab between them.
type story struct {
	out    *tabwriter.Writer
	pool   *pgxpool.Pool
	reaper *reaper.Reaper
}

// tell shows the steps one after the other.
func tell(ctx context.Context, out io.Writer, pool *pgxpool.Pool) error {
	r, err := reaper.New(pool, reaper.Config{})
	if err != nil {
		return err
	}
	s := &story{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), pool, r}
	steps := []struct {
		title, line string
		show        func(context.Context) error
	}{
		{"1. The queue", "worker-1 and worker-2 died: nobody renews their leases or finishes their jobs.", s.jobs},
		{"2. The dry run", "What an apply would do, oldest lease first. It only reads and needs no gate.", s.dryRun},
		{"3. The refusals", "An apply needs an actor and three open gates. An operator opens them.", s.refusals},
		{"4. The apply", "The operator sets " + gates.DryRunOnly + "=false, and the apply goes ahead.", s.apply},
		{"5. The queue afterwards", "Two jobs wait for another try, one is dead. The others are unchanged.", s.jobs},
		{"6. The dead letters", "The job whose attempts were used up, with all its columns.", s.deadLetters},
	}
	for _, step := range steps {
		fmt.Fprintf(s.out, "\n%s\n%s\n\n", step.title, step.line)
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

// refusals applies without an actor, then with no gate open, then with one and two.
func (s *story) refusals(ctx context.Context) error {
	fmt.Fprintln(s.out, "WHEN\tREFUSED, BECAUSE")
	tries := []struct{ when, actor, opened string }{
		{"no actor is given", "", ""},
		{"no gate is set", actor, ""},
		{"operator sets " + gates.SubstrateEnabled + "=true", actor, gates.SubstrateEnabled},
		{"operator sets " + gates.ReaperEnabled + "=true", actor, gates.ReaperEnabled},
	}
	for _, try := range tries {
		if try.opened != "" {
			if err := (gates.Table{}).Set(ctx, s.pool, "operator", try.opened, "true"); err != nil {
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

// jobs shows the queue. CLOCK is the time that matters in the job's state.
func (s *story) jobs(ctx context.Context) error {
	return s.table(ctx, "KIND\tSTATE\tATTEMPTS\tOWNER\tCLOCK\tLAST ERROR", `
select concat_ws(e'\t', job_kind, state, attempts || ' of ' || max_attempts, coalesce(lease_owner, '-'),
  case
    when lease_until < now() then 'overdue ' || floor(extract(epoch from now() - lease_until)) || 's'
    when lease_until is not null then 'live ' || ceil(extract(epoch from lease_until - now())) || 's'
    when state = 'retry_waiting' then 'waits ' || ceil(extract(epoch from scheduled_at - now())) || 's'
    else '-'
  end,
  coalesce(last_error, '-'))
from job_queue
order by job_kind`)
}

func (s *story) deadLetters(ctx context.Context) error {
	return s.table(ctx, "KIND\tATTEMPTS\tMOVED BY\tFINAL ERROR", `
select concat_ws(e'\t', job_kind, attempts || ' of ' || max_attempts, moved_by, final_error)
from job_dead_letter
order by moved_at, job_kind`)
}

// table shows the rows of a query. Each is one text.
func (s *story) table(ctx context.Context, header, query string) error {
	rows, _ := s.pool.Query(ctx, query) // CollectRows returns its error
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	fmt.Fprintln(s.out, header+"\n"+strings.Join(lines, "\n"))
	return err
}
