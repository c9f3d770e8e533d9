package deadletter_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// What someone requeued manually, or works on right now, is theirs. Redriven all
// the same, it runs twice; waited for, it holds up all the others.
func TestRedriveLeavesWhatIsSomeoneElses(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		meanwhile string // in a transaction that stays open unless committed
		committed bool
		reason    string
	}{
		"requeued manually":     {`update job_queue set state = 'ready' where job_kind = 'odd'`, true, deadletter.SkipAlive},
		"running":               {`update job_queue set state = 'leased', lease_until = now() + '1m' where job_kind = 'odd'`, true, deadletter.SkipAlive},
		"done":                  {`update job_queue set state = 'succeeded' where job_kind = 'odd'`, true, deadletter.SkipAlive},
		"being put back":        {`update job_queue set state = 'ready' where job_kind = 'odd'`, false, deadletter.SkipLocked},
		"its row is locked":     {`select from job_queue where job_kind = 'odd' for update`, false, deadletter.SkipLocked},
		"its row is going":      {`delete from job_queue where job_kind = 'odd'`, false, deadletter.SkipLocked},
		"its sibling is locked": {`select from job_dead_letter where final_error = 'sibling' for update`, false, deadletter.SkipLocked},
		"two rows have its id":  {`alter table job_queue drop constraint job_queue_pkey; insert into job_queue select * from job_queue where job_kind = 'odd'`, true, deadletter.SkipAmbiguous},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ids := openLetters(t, "even", "odd", "even")
			reapertest.Exec(t, pool, `
insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job, moved_at)
select job_id, 'sibling', 5, 5, 'sibling', 'me', job, moved_at - '1h'::interval from job_dead_letter where job_kind = 'odd'`)
			tx := reapertest.Begin(t, pool)
			reapertest.Exec(t, tx, test.meanwhile)
			if test.committed {
				require.NoError(t, tx.Commit(t.Context()))
			}
			before := reapertest.One[string](t, pool, oddRows)

			result := redriveAll(t, pool, deadletter.Filter{Kinds: []string{"even", "odd"}})

			letter := reapertest.One[string](t, pool, `select dead_letter_id::text from job_dead_letter where job_kind = 'odd'`)
			require.Equal(t, []deadletter.Skip{{DeadLetterID: letter, JobID: ids[1], Reason: test.reason}}, result.Skipped)
			require.Equal(t, []string{ids[0], ids[2]}, jobsOf(result))
			require.Equal(t, before, reapertest.One[string](t, pool, oddRows))
		})
	}
}

// oddRows is all that is known of the job of the kind odd, and the rows' versions.
const oddRows = `select concat(
	(select string_agg(q::text || q.xmin || q.ctid, ',') from job_queue q where job_kind = 'odd'),
	(select string_agg(d::text || d.xmin || d.ctid, ',' order by d.dead_letter_id) from job_dead_letter d where job_kind in ('odd', 'sibling')))`

// A letter that another redrive holds is not waited for: it will be redriven.
func TestRedrivePassesLockedLetters(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "a", "b", "c")
	letter := letterOf(t, pool, ids[1])
	tx := reapertest.Begin(t, pool)
	other, err := deadletter.Redrive(t.Context(), tx, deadletter.Store{}, actor, deadletter.Filter{IDs: []string{letter}}, 1)
	require.NoError(t, err)
	require.Equal(t, ids[1:2], jobsOf(other))

	result := redriveAll(t, pool, deadletter.Filter{})
	require.Equal(t, []string{ids[0], ids[2]}, jobsOf(result))
	require.Empty(t, result.Skipped)
	result = redriveAll(t, pool, deadletter.Filter{IDs: []string{letter}})
	require.Equal(t, []deadletter.Skip{{DeadLetterID: letter, JobID: ids[1], Reason: deadletter.SkipLocked}}, result.Skipped)

	require.NoError(t, tx.Commit(t.Context()))
	reapertest.RequireAgreement(t, pool)
}

// An operator who named a letter wants to know what became of it.
func TestRedriveAccountsForEveryIDThatWasAskedFor(t *testing.T) {
	t.Parallel()
	pool, jobs := openLetters(t, "a", "b", "c", "d", "e")
	letters := make([]string, len(jobs))
	for i, job := range jobs {
		letters[i] = letterOf(t, pool, job)
	}
	nobody := "00000000-0000-4000-8000-000000000000"
	redriveAll(t, pool, deadletter.Filter{IDs: letters[:1]})
	filter := deadletter.Filter{IDs: append([]string{nobody}, letters...), Kinds: []string{"a", "b", "c", "e"}}

	result, err := deadletter.Redrive(t.Context(), pool, deadletter.Store{}, operator, filter, 2)
	require.NoError(t, err)
	require.Equal(t, jobs[1:3], jobsOf(result))
	require.Equal(t, []deadletter.Skip{
		{DeadLetterID: nobody, Reason: deadletter.SkipNotFound},
		{DeadLetterID: letters[0], JobID: jobs[0], Reason: deadletter.SkipRedriven},
	}, result.Skipped, "those behind the limit are for the next call")

	filter.After = result.Next
	result, err = deadletter.Redrive(t.Context(), pool, deadletter.Store{}, operator, filter, 2)
	require.NoError(t, err)
	require.Equal(t, jobs[4:], jobsOf(result))
	require.Equal(t, []deadletter.Skip{{DeadLetterID: letters[3], JobID: jobs[3], Reason: deadletter.SkipFiltered}}, result.Skipped)
	require.Empty(t, result.Next)
	reapertest.RequireAgreement(t, pool)
}

// A page full of letters that are always skipped must not hide the ones behind it.
func TestRedriveGoesOnBehindWhatItSkips(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "odd", "odd", "odd", "even", "even")
	reapertest.Exec(t, pool, `update job_queue set state = 'ready' where job_kind = 'odd'`)

	var redriven []string
	skipped, filter := 0, deadletter.Filter{}
	for {
		result, err := deadletter.Redrive(t.Context(), pool, deadletter.Store{}, operator, filter, 2)
		require.NoError(t, err)
		redriven = append(redriven, jobsOf(result)...)
		skipped += result.SkippedCount
		if filter.After = result.Next; result.Next == "" {
			break
		}
	}
	require.Equal(t, ids[3:], redriven)
	require.Equal(t, 3, skipped)
}

// Two callers who each hold one letter of a job, and want the other one, must
// neither wait for each other nor both put the job back.
func TestTwoCallersWithALetterEachOfOneJob(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "invoice")
	older := letterOf(t, pool, ids[0])
	reapertest.Exec(t, pool, `update job_queue set state = 'retry_waiting'`)
	dieAgain(t, pool, ids...)
	reapertest.Exec(t, pool, `delete from job_queue`)
	first := holding(t, pool, letterOf(t, pool, ids[0]))

	result := redriveAll(t, pool, deadletter.Filter{IDs: []string{older}})
	require.Equal(t, []deadletter.Skip{{DeadLetterID: older, JobID: ids[0], Reason: deadletter.SkipLocked}}, result.Skipped)

	require.NoError(t, first.Rollback(t.Context()))
	require.Equal(t, ids, jobsOf(redriveAll(t, pool, deadletter.Filter{IDs: []string{older}})))
	reapertest.RequireAgreement(t, pool)
}

// holding is a transaction that has a letter locked.
func holding(t *testing.T, pool *pgxpool.Pool, letter string) pgx.Tx {
	t.Helper()
	tx := reapertest.Begin(t, pool)
	_, err := tx.Exec(t.Context(), `select from job_dead_letter where dead_letter_id = $1 for update`, letter)
	require.NoError(t, err)
	return tx
}
