package reaper_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/reaper"
)

// Names that a careless quoting trips over must find their jobs here, too.
func TestQuotedNamesFindTheirJobs(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "exhausted", 4, 4, 5)
	reapertest.Exec(t, pool, `create schema "Odd-Schema";
		alter table job_queue set schema "Odd-Schema";
		alter table "Odd-Schema".job_queue rename to "job""queue; drop table x";
		alter table "Odd-Schema"."job""queue; drop table x" rename column lease_until to "{columns} $1 ""until""";
		alter table "Odd-Schema"."job""queue; drop table x" rename column state to "it's \state";
		alter table "Odd-Schema"."job""queue; drop table x" add column "mine ' \ ? {values}" text default 'kept';
		alter table job_dead_letter rename to "dead 'letters' {and}"`)
	table := reaper.Table{
		Name:    pgx.Identifier{"Odd-Schema", `job"queue; drop table x`},
		Columns: reaper.Columns{LeaseUntil: `{columns} $1 "until"`, State: `it's \state`},
		States:  reaper.States{RetryWaiting: `it's \waiting {job_id}`},
	}
	letters := deadletter.Table{Name: pgx.Identifier{"dead 'letters' {and}"}}
	require.Equal(t, 4, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{Queue: table, Gates: reapertest.OpenGate, DeadLetter: letters}), 10).DeadLetterCount)
	reapertest.Exec(t, pool, `delete from "Odd-Schema"."job""queue; drop table x" where lease_owner is null and job_id in (
		select job_id from "Odd-Schema"."job""queue; drop table x" limit 2)`)

	queue := table.DeadLetterQueue()
	store := deadletter.Store{Table: letters, Queue: queue}
	result, err := deadletter.Redrive(t.Context(), pool, store, "operator", deadletter.Filter{}, 10)

	require.NoError(t, err)
	require.Equal(t, 4, result.RedrivenCount)
	require.Equal(t, 4, reapertest.One[int](t, pool, `select count(*) from "Odd-Schema"."job""queue; drop table x"
		where "it's \state" = $1 and "mine ' \ ? {values}" = 'kept'`, `it's \waiting {job_id}`))
	purged, err := deadletter.Purge(t.Context(), pool, store, 0, deadletter.PurgeConfig{Unredriven: true})
	require.NoError(t, err)
	require.Equal(t, 4, purged.RedrivenCount)
}

// Verify's word for a missing table of letters is what most will have. A redrive
// has to work over it.
func TestTheTableThatVerifyAsksForHoldsRedrives(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `drop table job_dead_letter`)
	for _, problem := range reapertest.Verify(t, pool, reaper.Config{}).Problems {
		reapertest.Exec(t, pool, problem.Fix)
	}
	reapertest.Stale(t, pool, "exhausted", 2, 4, 5)
	require.Equal(t, 2, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10).DeadLetterCount)

	result, err := deadletter.Redrive(t.Context(), pool, deadletter.Store{}, "operator", deadletter.Filter{}, 10)

	require.NoError(t, err)
	require.Equal(t, 2, result.RedrivenCount)
}

// A wrong mapping is found by New and by a redrive, and not as SQL that fails or does
// something else.
func TestEveryFaultOfAMappingIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	table := reaper.Table{
		Name:    pgx.Identifier{""},
		Columns: reaper.Columns{State: "attempts"},
		States:  reaper.States{DeadLetter: "a\x00"},
	}

	_, err := reaper.New(pool, reaper.Config{Queue: table})
	require.ErrorIs(t, err, pgtext.ErrName)
	require.ErrorIs(t, err, reaper.ErrDuplicateName)
	require.Len(t, reapertest.Flatten(err), 3)

	store := deadletter.Store{Queue: table.DeadLetterQueue()}
	_, err = deadletter.Redrive(t.Context(), pool, store, "operator", deadletter.Filter{}, 10)
	require.ErrorIs(t, err, pgtext.ErrName)
	require.ErrorIs(t, err, deadletter.ErrQueue)
	require.Len(t, reapertest.Flatten(err), 5) // ErrQueue with each name, and a name that stands for two things
}

// A mover of the user's sees every name that it may need to reap rows itself.
func TestMoversSeeTheWholeMapping(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "exhausted", 1, 4, 5)
	var got deadletter.Queue
	mover := deadletter.MoverFunc(func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
		got = batch.Queue
		return deadletter.Table{}.Move(ctx, tx, batch)
	})

	reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{DeadLetter: mover}), 1)

	require.Equal(t, reaper.Table{}.DeadLetterQueue(), got)
	require.Equal(t, deadletter.Queue{
		Table: pgx.Identifier{"job_queue"},
		JobID: "job_id", JobKind: "job_kind", Attempts: "attempts", MaxAttempts: "max_attempts",
		State: "state", ScheduledAt: "scheduled_at", LeaseOwner: "lease_owner", LeaseUntil: "lease_until",
		LastError: "last_error", Leased: "leased", RetryWaiting: "retry_waiting", DeadLetter: "dead_letter",
	}, got)
	none := reaper.Table{Columns: reaper.Columns{JobKind: reaper.None, LastError: reaper.None}}.DeadLetterQueue()
	require.Empty(t, none.JobKind)
	require.Empty(t, none.LastError)
}

// The dead jobs of a queue that is mapped.
func ExampleTable_DeadLetterQueue() {
	withQueue(func(ctx context.Context, pool *pgxpool.Pool) {
		table := reaper.Table{Name: pgx.Identifier{"public", "job_queue"}}
		queue := table.DeadLetterQueue()
		r, err := reaper.New(pool, reaper.Config{
			Queue: table,
			Gates: gates.Static{SubstrateEnabled: true, ReaperEnabled: true},
		})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := r.Apply(ctx, "billing-reaper", 100); err != nil {
			log.Fatal(err)
		}

		result, err := deadletter.Redrive(ctx, pool, deadletter.Store{Queue: queue}, "me", deadletter.Filter{}, 100)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.RedrivenCount, "redriven in", queue.Table.Sanitize())
	})
	// Output: 1 redriven in "public"."job_queue"
}
