package reaper_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// marked is a queue without states whose moved jobs are told by what is written.
func marked(t reaper.Table) reaper.Config {
	t.Columns.State = reaper.None
	return reaper.Config{Queue: t, DeadLetter: deadletter.InPlace{}, Gates: reapertest.OpenGate}
}

// unmarking are the mappings by which a free job would look like a dead one. A purge would
// remove live jobs.
var unmarking = map[string]reaper.Table{
	"nothing is written":                {},
	"NULL":                              {OnMove: reaper.Set{"failed_at": nil}},
	"what a reset writes too":           {OnReset: reaper.Set{"dead": 1}, OnMove: reaper.Set{"dead": "1"}},
	"a time where a reset writes one":   {OnReset: reaper.Set{"failed_at": reaper.Now}, OnMove: reaper.Set{"failed_at": reaper.Now}},
	"any time where a reset writes one": {OnReset: reaper.Set{"failed_at": "today"}, OnMove: reaper.Set{"failed_at": reaper.Now}},
	"what all rows of the reaper's are": {Only: reaper.Set{"kind": "mail"}, OnMove: reaper.Set{"kind": "mail"}},
	"the scheduled time, which all have": {
		OnMove: reaper.Set{"scheduled_at": reaper.Now},
	},
	"attempts, of which new jobs have none": {
		Columns: reaper.Columns{LostLeases: "lost"}, MaxLostLeases: 3, OnMove: reaper.Set{"attempts": 0},
	},
	"the owner, kept": {OnMove: reaper.Set{"lease_owner": reaper.Keep}},
}

// New refuses each of them, whatever the mover is that they are given.
func TestAMoveMustLeaveAMark(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	for name, table := range unmarking {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := marked(table)
			movers := []deadletter.Mover{deadletter.InPlace{}, deadletter.Table{}}
			if table.OnMove != nil { // else a mover may remove the row
				movers = append(movers, deadletter.Function{})
			}
			for _, mover := range movers {
				cfg.DeadLetter = mover
				_, err := reaper.New(pool, cfg)
				require.ErrorIs(t, err, reaper.ErrMapping)
			}
			store := deadletter.Store{Queue: cfg.Queue.DeadLetterQueue(), InPlace: true}
			_, err := deadletter.Purge(t.Context(), pool, store, 0, deadletter.PurgeConfig{Unredriven: true})
			require.ErrorIs(t, err, deadletter.ErrQueue)
			_, err = deadletter.Redrive(t.Context(), pool, store, "operator", deadletter.Filter{}, 10)
			require.ErrorIs(t, err, deadletter.ErrQueue)
			_, err = deadletter.List(t.Context(), pool, store, deadletter.Filter{}, 10)
			require.ErrorIs(t, err, deadletter.ErrQueue)
		})
	}
}

// Where the letters have a table, the queue's row of a redriven job is left alone if
// nothing tells that it is a dead one; it may be a live job's.
func TestWithoutMarksNoRowOfTheQueueIsADeadJobs(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `insert into job_queue (job_id, job_kind) values (gen_random_uuid(), 'live')`)
	reapertest.Exec(t, pool, `insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
		select job_id, 'live', 5, 5, 'e', 'a', to_jsonb(q) from job_queue q
		union all select gen_random_uuid(), 'gone', 5, 5, 'e', 'a', '{"job_kind": "gone", "payload": {}, "max_attempts": 5}'`)
	reapertest.Exec(t, pool, `alter table job_queue drop column state`)
	table := reaper.Table{Columns: reaper.Columns{State: reaper.None}, OnReset: reaper.Set{"last_error": nil, "payload": `{"again": 1}`}}
	store := deadletter.Store{Queue: table.DeadLetterQueue()}

	result, err := deadletter.Redrive(t.Context(), pool, store, "operator", deadletter.Filter{}, 10)
	require.NoError(t, err)
	_, err = deadletter.Purge(t.Context(), pool, store, 0, deadletter.PurgeConfig{Unredriven: true})
	require.NoError(t, err)

	require.Equal(t, deadletter.SkipAlive, result.Skipped[0].Reason)
	require.True(t, result.Redriven[0].Rebuilt)
	require.Equal(t, []string{`gone {"again": 1}`, "live {}"}, reapertest.Column(t, pool,
		`select job_kind || ' ' || payload from job_queue order by 1`), "the rebuilt row has what a reset writes")
}

// A redrive that does not undo what a move wrote would send a job nowhere: no worker
// takes it, and the next purge removes it.
func TestARedriveMustUndoTheMark(t *testing.T) {
	t.Parallel()
	library := libraries["delayed_job"]
	pool := library.open(t)
	library.bury(t, pool)
	store := library.store()
	redrive := func() (*deadletter.RedriveResult, error) {
		return deadletter.Redrive(t.Context(), pool, store, "operator", deadletter.Filter{}, 10)
	}

	store.Queue.OnReset = reaper.Set{"failed_at": "today"}
	_, err := redrive()
	require.ErrorIs(t, err, deadletter.ErrQueue)

	store.Queue.OnReset = reaper.Set{"failed_at": nil}
	reapertest.Exec(t, pool, `create function keep() returns trigger language plpgsql as
		$$ begin new.failed_at := old.failed_at; return new; end $$;
		create trigger keep before update on jobs for each row execute function keep()`)
	result, err := redrive()
	require.NoError(t, err)
	require.Equal(t, 2, result.FailedCount, "a trigger has kept the mark")
	library.requireReaped(t, pool, 0)
}

// A trigger that takes the mark away would leave a job that workers take for a free one,
// whose attempts are used up, and which no letter tells of.
func TestAMoveWhoseMarkIsNotStoredIsUndone(t *testing.T) {
	t.Parallel()
	movers := map[string]deadletter.Mover{
		"in place": deadletter.InPlace{}, "a mover in Go": deadletter.MoverFunc(deadletter.InPlace{}.Move),
	}
	for name, mover := range movers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries["delayed_job"]
			library.cfg.DeadLetter = mover
			pool := library.open(t)
			library.fill(t, pool)
			reapertest.Exec(t, pool, `create function unmark() returns trigger language plpgsql as
				$$ begin new.failed_at := null; return new; end $$;
				create trigger unmark before update on jobs for each row execute function unmark()`)

			result := reapertest.Apply(t, reapertest.New(t, pool, library.config()), 10)

			require.Equal(t, []int{3, 0, 2}, []int{result.ResetCount, result.DeadLetterCount, result.FailedCount})
			require.Equal(t, map[string]int{"young reset": 3, "spent leased": 2, "live leased": 2}, library.seen(t, pool))
		})
	}
}
