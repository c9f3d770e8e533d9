package reaper_test

import (
	"encoding/json"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// review is a dry run's result as a reviewer's file holds it.
func review(t *testing.T, r *reaper.Reaper, limit int) *reaper.DryRunResult {
	t.Helper()
	plan, err := r.DryRun(t.Context(), limit)
	require.NoError(t, err)
	var read reaper.DryRunResult
	require.NoError(t, json.Unmarshal([]byte(reapertest.JSON(t, plan)), &read))
	return &read
}

// What a person has looked at and agreed to is reaped, and what came up since is
// not.
func TestApplyPlanReapsWhatWasReviewedAndNoMore(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "reviewed", 3, 0, 5)
	reapertest.Stale(t, pool, "spent", 2, 4, 5)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until) values ('ancient', 'leased', '-infinity'),
		('year 44 BC', 'leased', '0044-03-15 12:00:00.123456+00 BC')`)
	r := reapertest.New(t, pool, reaper.Config{})
	plan := review(t, r, 10)
	reapertest.Stale(t, pool, "new", 5, 0, 5)
	before := reapertest.BadRows(t, pool, "new")

	result, err := r.ApplyPlan(t.Context(), reapertest.Actor, plan)

	require.NoError(t, err)
	require.Equal(t, 5, result.ResetCount)
	require.Equal(t, 2, result.DeadLetterCount)
	require.Nil(t, result.Skipped)
	require.Equal(t, before, reapertest.BadRows(t, pool, "new"))
	for i, action := range result.Actions {
		require.Equal(t, plan.Jobs[i].JobID, action.JobID)
	}
	require.NotContains(t, reapertest.JSON(t, result), "skipped")
}

// Between the review and the apply the world goes on. Each of these jobs is not
// what was reviewed any more.
func TestApplyPlanLeavesWhatHasChanged(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ meanwhile, reason string }{
		"renewed":                 {`update job_queue set lease_until = now() + interval '1 minute'`, reaper.SkipRenewed},
		"renewed and stale again": {`update job_queue set lease_until = lease_until + interval '1 microsecond'`, reaper.SkipRenewed},
		"given to another": {
			`update job_queue set lease_owner = 'another', lease_until = now() + interval '1 minute'`, reaper.SkipClaimed},
		"given to another, stale": {`update job_queue set lease_owner = 'another'`, reaper.SkipClaimed},
		"given to nobody":         {`update job_queue set lease_owner = null`, reaper.SkipClaimed},
		"claimed by the same":     {`update job_queue set attempts = 1, lease_until = now() + interval '1 minute'`, reaper.SkipClaimed},
		"finished":                {`update job_queue set state = 'succeeded', lease_owner = null, lease_until = null`, reaper.SkipFinished},
		"failed by its worker":    {`update job_queue set state = 'retry_waiting', attempts = 1, last_error = 'no', lease_until = null`, reaper.SkipFinished},
		"reaped":                  {`update job_queue set state = 'retry_waiting', attempts = 1, last_error = 'lease_expired_reaped', lease_until = null`, reaper.SkipReaped},
		"gone":                    {`delete from job_queue`, reaper.SkipGone},
		"other attempts":          {`update job_queue set attempts = 1`, reaper.SkipChanged},
		"other due":               {`update job_queue set max_attempts = 1`, reaper.SkipChanged},
		"a lease without an end":  {`update job_queue set lease_until = null`, reaper.SkipRenewed},
		"a lease that never ends": {`update job_queue set lease_until = 'infinity'`, reaper.SkipRenewed},
		"a kind that is not ours": {`update job_queue set job_kind = 'other'`, reaper.SkipNotStale},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "kind", 1, 0, 5)
			r := reapertest.New(t, pool, reaper.Config{ExceptKinds: []string{"other"}})
			plan := review(t, r, 10)
			reapertest.Exec(t, pool, test.meanwhile)
			before := reapertest.Fingerprint(t, pool)

			result, err := r.ApplyPlan(t.Context(), reapertest.Actor, plan)

			require.NoError(t, err)
			require.Equal(t, []reaper.Skip{{JobID: plan.Jobs[0].JobID, Reason: test.reason}}, result.Skipped)
			require.Empty(t, result.Actions)
			require.Equal(t, before, reapertest.Fingerprint(t, pool))
			require.JSONEq(t, `{"actor":"test-reaper","refused":false,"reset_count":0,"dead_letter_count":0,"actions":[],
				"skipped":[{"job_id":"`+plan.Jobs[0].JobID+`","reason":"`+test.reason+`"}]}`, reapertest.JSON(t, result))
		})
	}
}

// A plan of many jobs, each with another fate, and some that stand.
func TestApplyPlanTellsMixedDriftApart(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 6, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{})
	plan := review(t, r, 10)
	id := func(i int) string { return plan.Jobs[i].JobID }
	reapertest.Exec(t, pool, `update job_queue set lease_until = now() + interval '1 minute' where job_id = $1`, id(0))
	reapertest.Exec(t, pool, `delete from job_queue where job_id = $1`, id(2))
	require.Len(t, reapertest.Apply(t, r, 1).Actions, 1) // reaps job 1
	tx := reapertest.Begin(t, pool)
	reapertest.Exec(t, tx, `select from job_queue where job_id = $1 for update`, id(4))

	result, err := r.ApplyPlan(t.Context(), reapertest.Actor, plan)

	require.NoError(t, err)
	require.Equal(t, []reaper.Skip{
		{id(0), reaper.SkipRenewed}, {id(1), reaper.SkipReaped}, {id(2), reaper.SkipGone}, {id(4), reaper.SkipLocked},
	}, result.Skipped)
	require.Len(t, result.Actions, 2)
	require.Equal(t, []string{id(3), id(5)}, []string{result.Actions[0].JobID, result.Actions[1].JobID})
}

// A plan that came from a file may be anything.
func TestApplyPlanRefusesWhatIsNoPlan(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 2, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{})
	job := review(t, r, 1).Jobs[0]
	changed := func(change func(*reaper.Job)) reaper.Job {
		other := job
		change(&other)
		return other
	}
	before := reapertest.Fingerprint(t, pool)

	tests := map[string]struct{ plan *reaper.DryRunResult }{
		"none":                 {nil},
		"a job twice":          {&reaper.DryRunResult{Jobs: []reaper.Job{job, job}}},
		"no due":               {&reaper.DryRunResult{Jobs: []reaper.Job{changed(func(j *reaper.Job) { j.WouldAction = "" })}}},
		"another due":          {&reaper.DryRunResult{Jobs: []reaper.Job{changed(func(j *reaper.Job) { j.WouldAction = "delete" })}}},
		"an id that cannot be": {&reaper.DryRunResult{Jobs: []reaper.Job{job, changed(func(j *reaper.Job) { j.JobID = "17" })}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := r.ApplyPlan(t.Context(), reapertest.Actor, test.plan)
			require.ErrorIs(t, err, reaper.ErrPlan)
			require.Nil(t, result)
			require.Equal(t, before, reapertest.Fingerprint(t, pool))
		})
	}
}

// An empty plan says that nothing is to be done. It is no call for an apply.
func TestApplyPlanOfNothingDoesNothing(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 2, 0, 5)
	before := reapertest.Fingerprint(t, pool)

	for _, plan := range []*reaper.DryRunResult{{}, {Jobs: []reaper.Job{}}} {
		result, err := reapertest.New(t, pool, reaper.Config{}).ApplyPlan(t.Context(), reapertest.Actor, plan)
		require.NoError(t, err)
		require.Empty(t, result.Actions)
		require.Empty(t, result.Skipped)
	}
	require.Equal(t, before, reapertest.Fingerprint(t, pool))
}

// A review does not open a gate, nor stand for a name.
func TestApplyPlanIsRefusedAsAnApplyIs(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Stale(t, pool, "kind", 2, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{})
	plan := review(t, r, 10)

	result, err := r.ApplyPlan(t.Context(), " ", plan)
	require.NoError(t, err)
	require.Equal(t, reaper.ReasonActorRequired, result.Reason)
	result, err = r.ApplyPlan(t.Context(), reapertest.Actor, plan)
	require.NoError(t, err)
	require.Equal(t, "queue.job_substrate.enabled=false", result.Reason)
	require.JSONEq(t, `{"refused":true,"reason":"queue.job_substrate.enabled=false"}`, reapertest.JSON(t, result))
}

// More stale leases than MaxStale call for a person, and a plan is what that
// person has looked at.
func TestApplyPlanGoesBeyondMaxStale(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 5, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{MaxStale: 1})
	plan := review(t, r, 2)

	result, err := r.ApplyPlan(t.Context(), reapertest.Actor, plan)

	require.NoError(t, err)
	require.Len(t, result.Actions, 2)
}

// In a caller's transaction, and with rows that a trigger turns away, a plan goes
// the way of an apply.
func TestApplyPlanFailsJobByJob(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "good", 3, 0, 5)
	reapertest.Stale(t, pool, "bad", 1, 0, 5)
	reapertest.Stale(t, pool, "bad", 1, 4, 5)
	reapertest.Exec(t, pool, `alter table job_queue add constraint never check (job_kind <> 'bad' or state = 'leased')`)
	plan := review(t, reapertest.New(t, pool, reaper.Config{}), 10)
	tx := reapertest.Begin(t, pool)

	result, err := reapertest.New(t, tx, reaper.Config{}).ApplyPlan(t.Context(), reapertest.Actor, plan)

	require.NoError(t, err)
	require.Len(t, result.Actions, 3)
	require.Equal(t, 2, result.FailedCount)
	require.Empty(t, result.Skipped)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, map[string]int{"retry_waiting": 3, "leased": 2}, reapertest.States(t, pool))
}
