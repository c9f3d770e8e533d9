package deadletter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// A job that is back and that no worker claims, or that dies at its first failed
// try, was not redriven at all.
func TestARedrivenJobStartsAnew(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "invoice", "mail")
	reapertest.Exec(t, pool, `update job_queue set payload = '{"n": 9007199254740993}'`)

	result := redriveAll(t, pool, deadletter.Filter{Kinds: []string{"invoice"}})

	letter := letterOf(t, pool, ids[0])
	require.Equal(t, []deadletter.Redriven{{JobID: ids[0], DeadLetterIDs: []string{letter}}}, result.Redriven)
	require.Equal(t, operator, result.Actor)
	require.Empty(t, result.Skipped)
	require.Empty(t, result.Failures)
	require.Empty(t, result.Next)
	require.True(t, reapertest.One[bool](t, pool, `
select redriven_at = $2 and redriven_by = $3 and attempts = 5 from job_dead_letter where dead_letter_id = $1`,
		letter, result.RedrivenAt, operator))
	require.JSONEq(t, `{"state": "retry_waiting", "attempts": 0, "max_attempts": 5, "lease_owner": null, "lease_until": null,
		"last_error": null, "payload": {"n": 9007199254740993}, "job_kind": "invoice", "now": true}`, reapertest.One[string](t, pool, `
select (to_jsonb(q) - 'job_id' - 'scheduled_at' || jsonb_build_object('now', scheduled_at = $2::timestamptz))::text
from job_queue q where job_id = $1::text::uuid`, ids[0], result.RedrivenAt))
	require.Equal(t, []string{ids[0]}, reapertest.Column(t, pool, `
select job_id::text from job_queue
where state in ('ready', 'retry_waiting') and scheduled_at <= now() order by scheduled_at for update skip locked`))
	reapertest.RequireAgreement(t, pool)
}

// An operator who presses the button twice must not run the jobs twice.
func TestALetterIsRedrivenOnce(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "invoice", "mail")

	require.Equal(t, 2, redriveAll(t, pool, deadletter.Filter{}).RedrivenCount)
	before := reapertest.Contents(t, pool)
	again := redriveAll(t, pool, deadletter.Filter{})
	require.Empty(t, again.Redriven)
	require.Empty(t, again.Skipped)
	letter := letterOf(t, pool, ids[1])
	again = redriveAll(t, pool, deadletter.Filter{IDs: []string{letter}})
	require.Empty(t, again.Redriven)
	require.Equal(t, []deadletter.Skip{{letter, ids[1], deadletter.SkipRedriven}}, again.Skipped)
	require.Equal(t, before, reapertest.Contents(t, pool))
	reapertest.RequireAgreement(t, pool)
}

// A job that dies of the same again must be there to be redriven again, and what
// was done before must stay to be read.
func TestAJobThatDiesAgainHasALetterMore(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "invoice")
	redriveAll(t, pool, deadletter.Filter{})
	first := letterOf(t, pool, ids[0])
	marked := reapertest.One[string](t, pool, `select d::text from job_dead_letter d`)

	dieAgain(t, pool, ids...)
	second := letterOf(t, pool, ids[0])
	require.NotEqual(t, first, second)
	reapertest.RequireAgreement(t, pool)

	result := redriveAll(t, pool, deadletter.Filter{})
	require.Equal(t, []deadletter.Redriven{{JobID: ids[0], DeadLetterIDs: []string{second}}}, result.Redriven)
	require.Equal(t, marked, reapertest.One[string](t, pool, `select d::text from job_dead_letter d where dead_letter_id = $1`, first))
	reapertest.RequireAgreement(t, pool)
}

// A job that someone requeued manually and died again has two letters that nobody
// redrove. Redriven once for each, it would run twice.
func TestAJobWithSeveralLettersIsRedrivenOnce(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		before string
		gone   bool
	}{
		"the queue row is there": {`select 1`, false},
		"the queue row is gone":  {`delete from job_queue`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ids := openLetters(t, "invoice")
			older := letterOf(t, pool, ids[0])
			reapertest.Exec(t, pool, `update job_queue set state = 'retry_waiting', payload = '{"tried": "again"}'`)
			dieAgain(t, pool, ids...)
			newer := letterOf(t, pool, ids[0])
			reapertest.Exec(t, pool, test.before)

			// The older letter is the one that is asked for.
			result := redriveAll(t, pool, deadletter.Filter{IDs: []string{older}})

			require.Equal(t, []deadletter.Redriven{
				{JobID: ids[0], DeadLetterIDs: []string{newer, older}, Rebuilt: test.gone},
			}, result.Redriven)
			require.JSONEq(t, `{"tried": "again"}`, reapertest.One[string](t, pool, `select payload::text from job_queue`))
			reapertest.RequireAgreement(t, pool)
			reapertest.Exec(t, pool, `delete from job_queue`) // it was done, and cleaned up
			require.Empty(t, redriveAll(t, pool, deadletter.Filter{}).Redriven)
		})
	}
}

// A caller who was too fast with the filter wants the others to stay.
func TestRedriveTakesWhatItsFilterLetsThrough(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "a", "b", "c", "d", "e")
	first := reapertest.One[string](t, pool, `select job_id::text from job_dead_letter order by moved_at limit 1`)
	require.Equal(t, ids[0], first)

	limited, err := deadletter.Redrive(t.Context(), pool, deadletter.Store{}, operator, deadletter.Filter{}, 2)
	require.NoError(t, err)
	require.Equal(t, ids[:2], jobsOf(limited))
	require.NotEmpty(t, limited.Next)
	require.Equal(t, ids[3:4], jobsOf(redriveAll(t, pool, deadletter.Filter{JobIDs: ids[3:4]})))
	require.Empty(t, redriveAll(t, pool, deadletter.Filter{IDs: []string{}}).Redriven)
	require.Empty(t, redriveAll(t, pool, deadletter.Filter{YoungerThan: 1}).Redriven)
	require.Equal(t, ids[2:3], jobsOf(redriveAll(t, pool, deadletter.Filter{After: limited.Next, Kinds: []string{"a", "c"}})))
	require.Equal(t, []string{ids[4]}, reapertest.Column(t, pool, `select job_id::text from job_dead_letter where redriven_at is null`))
	reapertest.RequireAgreement(t, pool)
}

// An incident leaves thousands of letters. Two operators who redrive them at once
// must not redrive one twice, nor get into each other's way.
func TestThousandsAreRedrivenOnceByTwoAtOnce(t *testing.T) {
	t.Parallel()
	const n = 5000
	pool := pgtest.New(t)
	enqueue(t, pool, many(n)...)
	require.Equal(t, n, reap(t, pool).DeadLetterCount)
	reapertest.Exec(t, pool, `delete from job_queue where hashtext(job_id::text) % 3 = 0`)
	reapertest.Exec(t, pool, `analyze`)

	results := make(chan *deadletter.RedriveResult)
	for range 2 {
		go func() {
			var total deadletter.RedriveResult
			for {
				result, err := deadletter.Redrive(t.Context(), pool, deadletter.Store{}, operator, deadletter.Filter{}, 700)
				if err != nil || len(result.Redriven)+len(result.Skipped)+len(result.Failures) == 0 {
					if err != nil {
						t.Error(err)
					}
					results <- &total
					return
				}
				total.Redriven = append(total.Redriven, result.Redriven...)
				total.Skipped = append(total.Skipped, result.Skipped...)
			}
		}()
	}
	seen := map[string]bool{}
	for range 2 {
		result := <-results
		require.Empty(t, result.Skipped)
		for _, job := range result.Redriven {
			require.False(t, seen[job.JobID])
			seen[job.JobID] = true
		}
	}
	require.Len(t, seen, n)
	require.Equal(t, n, reapertest.One[int](t, pool, `
select count(*) from job_queue q join job_dead_letter d using (job_id)
where q.state = 'retry_waiting' and d.redriven_at is not null and q.job_kind = d.job_kind`))
	reapertest.RequireAgreement(t, pool)
}

// Over a slow link a redrive that asks once a letter takes minutes, with the rows
// locked all the while.
func TestTheRoundTripsOfARedriveAreConstant(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	recorded, recorder := reapertest.Recording(t, pool)

	costs := map[int]bool{}
	for _, n := range []int{2, 2, 2000} { // the first prepares the statements
		enqueue(t, pool, many(n)...)
		require.Equal(t, n, reap(t, pool).DeadLetterCount)
		reapertest.Exec(t, pool, `delete from job_queue where job_id in (
			select job_id from job_queue where state = 'dead_letter' limit `+reapertest.One[string](t, pool, `select ($1 / 2)::text`, n)+`)`)
		before := recorder.Count()
		require.Equal(t, n, redriveAll(t, recorded, deadletter.Filter{}).RedrivenCount)
		costs[recorder.Count()-before] = true
	}
	require.Len(t, costs, 1)
	for cost := range costs {
		require.LessOrEqual(t, cost, 7)
	}
}
