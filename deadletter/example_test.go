package deadletter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A mover that announces dead jobs in an outbox, in the same transaction as the
// table that keeps them.
func ExampleMoverFunc() {
	mover := deadletter.MoverFunc(
		func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
			receipts, err := deadletter.Table{}.Move(ctx, tx, batch)
			if err != nil {
				return nil, err
			}
			message, err := json.Marshal(batch.IDs())
			if err != nil {
				return nil, err
			}
			_, err = tx.Exec(ctx, `insert into outbox (topic, message) values ('jobs.dead', $1)`, message)
			return receipts, err
		})
	fmt.Println(mover.Validate())
	// Output:
	// <nil>
}

func ExampleTable() {
	mover := deadletter.Table{Name: pgx.Identifier{"ops", "dead_jobs"}}
	fmt.Println(mover.Validate())
	// Output:
	// <nil>
}

func ExampleFunction() {
	mover := deadletter.Function{Name: pgx.Identifier{"ops", "bury_job"}}
	fmt.Println(mover.Validate())
	// Output:
	// <nil>
}

// withLetters runs an example on a database of its own, with three dead jobs.
func withLetters(example func(ctx context.Context, pool *pgxpool.Pool)) {
	ctx := context.Background()
	database, err := pgtest.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer database.Close() //nolint:errcheck // an example ends here
	_, err = database.Pool.Exec(ctx, `insert into job_queue (job_kind, state, attempts, lease_until, payload)
		select kind, 'leased', 4, now() - interval '1 minute', '{"customer": 7}'
		from unnest('{charge_card,resize_image,resize_image}'::text[]) kind`)
	if err != nil {
		log.Fatal(err)
	}
	r, err := reaper.New(database.Pool, reaper.Config{Gates: gates.Static{SubstrateEnabled: true, ReaperEnabled: true}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := r.Apply(ctx, "billing-reaper", 100); err != nil {
		log.Fatal(err)
	}
	example(ctx, database.Pool)
}

// All letters of a kind, page by page.
func ExampleList() {
	withLetters(func(ctx context.Context, pool *pgxpool.Pool) {
		filter := deadletter.Filter{Kinds: []string{"resize_image"}, Status: deadletter.StatusUnredriven}
		for {
			page, err := deadletter.List(ctx, pool, deadletter.Store{}, filter, 100)
			if err != nil {
				log.Fatal(err)
			}
			for _, letter := range page.Letters {
				fmt.Println(letter.JobKind, letter.Attempts, letter.FinalError, letter.MovedBy)
			}
			if filter.After = page.Next; page.Next == "" {
				return
			}
		}
	})
	// Output:
	// resize_image 5 lease_expired_reaped_at_max_attempts billing-reaper
	// resize_image 5 lease_expired_reaped_at_max_attempts billing-reaper
}

// What a job was about, payload and all.
func ExampleListWithJobs() {
	withLetters(func(ctx context.Context, pool *pgxpool.Pool) {
		filter := deadletter.Filter{Kinds: []string{"charge_card"}}
		page, err := deadletter.ListWithJobs(ctx, pool, deadletter.Store{}, filter, 1)
		if err != nil {
			log.Fatal(err)
		}
		var job struct {
			Payload struct{ Customer int }
		}
		if err := json.Unmarshal(page.Letters[0].Job, &job); err != nil {
			log.Fatal(err)
		}
		fmt.Println("customer", job.Payload.Customer)
	})
	// Output: customer 7
}

// All jobs of a kind that died within the last day, a hundred at a time, after
// what killed them was fixed.
func ExampleRedrive() {
	withLetters(func(ctx context.Context, pool *pgxpool.Pool) {
		filter := deadletter.Filter{Kinds: []string{"resize_image"}, YoungerThan: 24 * time.Hour}
		for {
			result, err := deadletter.Redrive(ctx, pool, deadletter.Store{}, "alice", filter, 100)
			switch {
			case errors.Is(err, deadletter.ErrOutcomeUnknown):
				continue // it happened whole or not at all; what was redriven is not redriven again
			case err != nil:
				log.Fatal("nothing has changed: ", err)
			}
			for _, skip := range result.Skipped {
				fmt.Println("left alone:", skip.JobID, skip.Reason)
			}
			for _, failure := range result.Failures {
				fmt.Println("rejected:", failure.JobID, failure.Error)
			}
			fmt.Println(result.RedrivenCount, "redriven")
			if filter.After = result.Next; result.Next == "" {
				return
			}
		}
	})
	// Output: 2 redriven
}

// A year's history goes, and with it the jobs that nobody redrove in that time.
func ExamplePurge() {
	withLetters(func(ctx context.Context, pool *pgxpool.Pool) {
		const year = 365 * 24 * time.Hour
		_, err := pool.Exec(ctx, `update job_dead_letter set moved_at = now() - interval '2 years' where job_kind = 'charge_card'`)
		if err != nil {
			log.Fatal(err)
		}

		result, err := deadletter.Purge(ctx, pool, deadletter.Store{}, year, deadletter.PurgeConfig{Unredriven: true})
		fmt.Println(result.RedrivenCount+result.UnredrivenCount, "letters and", result.JobCount, "jobs are gone")
		if err != nil {
			log.Fatal("and then: ", err)
		}
	})
	// Output: 1 letters and 1 jobs are gone
}
