package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// withQueue runs an example on a database of its own, with two stale leases.
func withQueue(example func(ctx context.Context, pool *pgxpool.Pool)) {
	ctx := context.Background()
	database, err := pgtest.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer database.Close() //nolint:errcheck // an example ends here
	_, err = database.Pool.Exec(ctx, `insert into job_queue (job_kind, state, attempts, lease_owner, lease_until) values
		('send_invoice', 'leased', 0, 'worker-1', now() - interval '90 seconds'),
		('resize_image', 'leased', 4, 'worker-2', now() - interval '60 seconds')`)
	if err != nil {
		log.Fatal(err)
	}
	example(ctx, database.Pool)
}

func ExampleReaper_DryRun() {
	withQueue(func(ctx context.Context, pool *pgxpool.Pool) {
		r, err := reaper.New(pool, reaper.Config{})
		if err != nil {
			log.Fatal(err)
		}
		result, err := r.DryRun(ctx, 100)
		if err != nil {
			log.Fatal(err)
		}
		for _, job := range result.Jobs {
			fmt.Println(job.JobKind, job.WouldAction)
		}
	})
	// Output:
	// send_invoice reset_to_retry_waiting
	// resize_image move_to_dead_letter
}

// A plan is made by one person, reviewed by another, and applied as it was
// reviewed. In between, one of its jobs was finished after all.
func ExampleReaper_ApplyPlan() {
	withQueue(func(ctx context.Context, pool *pgxpool.Pool) {
		r, err := reaper.New(pool, reaper.Config{
			Gates: gates.Static{SubstrateEnabled: true, ReaperEnabled: true},
		})
		if err != nil {
			log.Fatal(err)
		}
		plan, err := r.DryRun(ctx, 100)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := pool.Exec(ctx, `delete from job_queue where job_kind = 'send_invoice'`); err != nil {
			log.Fatal(err)
		}
		result, err := r.ApplyPlan(ctx, "operator@example.com", plan)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.DeadLetterCount, result.ResetCount, result.Skipped[0].Reason)
	})
	// Output:
	// 1 0 gone
}

func ExampleReaper_Apply() {
	withQueue(func(ctx context.Context, pool *pgxpool.Pool) {
		r, err := reaper.New(pool, reaper.Config{
			Gates: gates.Static{SubstrateEnabled: true, ReaperEnabled: true},
		})
		if err != nil {
			log.Fatal(err)
		}

		result, err := r.Apply(ctx, "billing-reaper", 100)
		var bad *gates.ValueError
		switch {
		case errors.As(err, &bad):
			log.Fatal("mend the setting ", bad.Key)
		case errors.Is(err, reaper.ErrOutcomeUnknown):
			log.Print("calling again is safe: ", err)
		case err != nil:
			log.Fatal("nothing has changed: ", err)
		case result.Refused:
			log.Print(result.Reason)
		}
		fmt.Println(result.ResetCount, "reset,", result.DeadLetterCount, "moved")
		for _, action := range result.Actions {
			fmt.Println(action.Action, action.Attempts, action.BackoffSec)
		}
	})
	// Output:
	// 1 reset, 1 moved
	// reset_to_retry_waiting 1 10
	// moved_to_dead_letter 5 0
}

// A queue with other names, dead letters of its own, and delays that are spread.
func ExampleNew() {
	withQueue(func(_ context.Context, pool *pgxpool.Pool) {
		_, err := reaper.New(pool, reaper.Config{
			Queue: reaper.Table{
				Name:    pgx.Identifier{"billing", "jobs"},
				Columns: reaper.Columns{JobID: "id", LeaseUntil: "visible_until"},
				States:  reaper.States{Leased: "running", RetryWaiting: "retryable", DeadLetter: "dead"},
			},
			Gates:      gates.Table{Name: pgx.Identifier{"billing", "settings"}},
			DeadLetter: deadletter.Table{Name: pgx.Identifier{"billing", "dead_jobs"}},
			Backoff:    backoff.Exponential{Jitter: 0.5},
		})
		fmt.Println(err)
	})
	// Output:
	// <nil>
}

func ExampleReaper_Verify() {
	withQueue(func(ctx context.Context, pool *pgxpool.Pool) {
		if _, err := pool.Exec(ctx, `drop index job_queue_lease_until_idx`); err != nil {
			log.Fatal(err)
		}
		r, err := reaper.New(pool, reaper.Config{})
		if err != nil {
			log.Fatal(err)
		}
		report, err := r.Verify(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(report)
	})
	// Output:
	// warning index_missing: "job_queue"."lease_until"
	//     No index serves the claim, so every pass reads the whole queue.
	//     > create index concurrently on "job_queue" ("lease_until") where "state" = 'leased'
}

func ExampleReaper_Drain() {
	withQueue(func(ctx context.Context, pool *pgxpool.Pool) {
		r, err := reaper.New(pool, reaper.Config{
			Gates: gates.Static{SubstrateEnabled: true, ReaperEnabled: true},
		})
		if err != nil {
			log.Fatal(err)
		}
		result, err := r.Drain(ctx, "billing-reaper", 1)
		if err != nil {
			log.Print("before the error: ", result.ResetCount, " reset")
		}
		fmt.Println(result.Batches, "batches,", result.ResetCount, "reset,", result.DeadLetterCount, "moved")
	})
	// Output:
	// 2 batches, 1 reset, 1 moved
}

func ExampleReaper_Run() {
	withQueue(func(ctx context.Context, pool *pgxpool.Pool) {
		ctx, stop := context.WithCancel(ctx)
		r, err := reaper.New(pool, reaper.Config{
			Gates: gates.Static{SubstrateEnabled: true, ReaperEnabled: true},
		})
		if err != nil {
			log.Fatal(err)
		}
		err = r.Run(ctx, "billing-reaper", reaper.RunConfig{
			Settle: time.Nanosecond, // this server has just started, and nobody is running jobs
			OnPass: func(_ context.Context, pass reaper.Pass) {
				fmt.Println(pass.Result.ResetCount, "reset,", pass.Result.DeadLetterCount, "moved")
				stop() // a service would not
			},
		})
		fmt.Println(err)
	})
	// Output:
	// 1 reset, 1 moved
	// context canceled
}

// A lease that ended at -infinity is older than any other.
func ExampleNegativeInfinity() {
	lease := reaper.Job{LeaseUntil: reaper.NegativeInfinity()}
	fmt.Println(lease.LeaseUntil.Equal(reaper.NegativeInfinity()))
	// Output:
	// true
}
