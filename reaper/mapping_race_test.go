package reaper_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// However many reapers run over a library's queue, each job is reaped once. One that is
// counted twice loses a try, or breaks a CHECK.
func TestLibrariesAreDrainedByTwo(t *testing.T) {
	t.Parallel()
	const each = 300
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			library.add(t, pool, "young", each, library.young, 1)
			library.add(t, pool, "spent", each, library.spent, 1)
			var results [2]*reaper.DrainResult
			var group sync.WaitGroup
			for i := range results {
				r := reapertest.New(t, pool, library.config())
				group.Go(func() {
					var err error
					if results[i], err = r.Drain(t.Context(), reapertest.Actor, 20); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			rest := reapertest.Apply(t, reapertest.New(t, pool, library.config()), 2*each) // what one had locked when the other ended

			require.Equal(t, each, results[0].ResetCount+results[1].ResetCount+rest.ResetCount)
			require.Equal(t, each, results[0].DeadLetterCount+results[1].DeadLetterCount+rest.DeadLetterCount)
			require.Equal(t, map[string]int{"young reset": each, "spent dead": each}, library.seen(t, pool))
		})
	}
}

// A worker that claims, or finishes, a job while the reaper looks keeps it: its row is
// locked, and then its lease is not stale.
func TestLibrariesLeaveWhatAWorkerHolds(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			library.add(t, pool, "young", 2, library.young, 5)
			library.add(t, pool, "held", 2, library.young, 5)
			r := reapertest.New(t, pool, library.config())
			plan := review(t, r, 10)
			worker := reapertest.Begin(t, pool)
			lease := pgx.Identifier{library.cfg.Queue.Columns.LeaseUntil}.Sanitize()
			reapertest.Exec(t, worker, `update `+library.config().Queue.Name.Sanitize()+` set `+lease+` = `+lease+` + interval '1 day'
				where label = 'held'`)

			planned, err := r.ApplyPlan(t.Context(), reapertest.Actor, plan)
			require.NoError(t, err)
			none := reapertest.Apply(t, r, 10)
			require.NoError(t, worker.Commit(t.Context()))
			after := reapertest.Apply(t, r, 10)

			require.Equal(t, 2, planned.ResetCount)
			require.Len(t, planned.Skipped, 2)
			require.Equal(t, reaper.SkipLocked, planned.Skipped[0].Reason)
			require.Empty(t, none.Actions)
			require.Empty(t, after.Actions)
			require.Equal(t, map[string]int{"young reset": 2, "held leased": 2}, library.seen(t, pool))
		})
	}
}

// States and owners of every type that a queue has for them.
func TestStatesAndOwnersOfEveryType(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		state, owner, owned string
		states              reaper.States
	}{
		"texts":              {"text", "text", `'it''s {a}'`, reaper.States{Leased: "it's", RetryWaiting: `a\b`, DeadLetter: "dead"}},
		"integers":           {"smallint", "integer", `-7`, reaper.States{Leased: "1", RetryWaiting: "-2", DeadLetter: "30000"}},
		"an enum":            {"mood", "uuid", `'7e7e7e7e-0000-0000-0000-000000000001'`, reaper.States{Leased: "it's", RetryWaiting: `a\b`, DeadLetter: "dead"}},
		"a domain of texts":  {"words", "words", `'me'`, reaper.States{Leased: "it's", RetryWaiting: `a\b`, DeadLetter: "dead"}},
		"a domain of an int": {"number", "inet", `'10.0.0.1/24'`, reaper.States{Leased: "1", RetryWaiting: "2", DeadLetter: "3"}},
		"citext":             {"citext", "text[]", `array['a b', 'c"d']`, reaper.States{Leased: "IT'S", RetryWaiting: `a\b`, DeadLetter: "dead"}},
		"names":              {"name", "jsonb", `'{"a": 1}'`, reaper.States{Leased: "it's", RetryWaiting: `a\b`, DeadLetter: "dead"}},
		"characters":         {"char(5)", "varchar(9)", `'x'`, reaper.States{Leased: "it's", RetryWaiting: `a\b`, DeadLetter: "dead"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, `create extension citext; create type mood as enum ('it''s', 'a\b', 'dead', 'new');
				create domain words as text; create domain number as integer check (value > 0);
				drop index job_queue_lease_until_idx, job_queue_scheduled_at_idx;
				alter table job_queue drop column state, drop column lease_owner, add column state `+test.state+`,
				add column lease_owner `+test.owner)

			reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, attempts, lease_until)
				select 'k', $1::text::`+test.state+`, `+test.owned+`, a, now() - interval '1 s' from unnest(array[0, 4]) a`,
				test.states.Leased)
			r := reapertest.New(t, pool, reaper.Config{Queue: reaper.Table{States: test.states}, Grace: time.Microsecond})

			plan := review(t, r, 10)
			result, err := r.ApplyPlan(t.Context(), reapertest.Actor, plan)

			require.NoError(t, err)
			require.Len(t, plan.Jobs, 2)
			owner := reapertest.One[string](t, pool, `select (`+test.owned+`)::`+test.owner+`::text`)
			require.Equal(t, owner, *plan.Jobs[0].LeaseOwner)
			require.Equal(t, []int{1, 1}, []int{result.ResetCount, result.DeadLetterCount}, result)
			require.Equal(t, owner, result.Actions[0].LeaseOwner)
			require.ElementsMatch(t, []string{test.states.RetryWaiting, test.states.DeadLetter},
				reapertest.Column(t, pool, `select trim(state::text) from job_queue where lease_owner is null and lease_until is null`))
		})
	}
}
