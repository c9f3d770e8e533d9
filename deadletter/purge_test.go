package deadletter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// What a purge takes too much of is gone for good.
func TestPurgeTakesWhatIsOldEnough(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		age  time.Duration
		cfg  deadletter.PurgeConfig
		left []string // kinds of letters
		jobs []string // kinds of queue rows
	}{
		"redriven ones":            {0, deadletter.PurgeConfig{}, []string{"new", "old"}, []string{"new", "old", "redriven", "redriven late"}},
		"of an age":                {90 * time.Minute, deadletter.PurgeConfig{}, []string{"new", "old", "redriven late"}, []string{"new", "old", "redriven", "redriven late"}},
		"of a greater age":         {1000 * time.Hour, deadletter.PurgeConfig{Unredriven: true}, []string{"new", "old", "redriven", "redriven late"}, []string{"new", "old", "redriven", "redriven late"}},
		"unredriven ones as well":  {90 * time.Minute, deadletter.PurgeConfig{Unredriven: true}, []string{"new", "redriven late"}, []string{"new", "redriven", "redriven late"}},
		"all of them, one by one":  {0, deadletter.PurgeConfig{Unredriven: true, Batch: 1}, []string{}, []string{"redriven", "redriven late"}},
		"all of them, two by two":  {0, deadletter.PurgeConfig{Unredriven: true, Batch: 2}, []string{}, []string{"redriven", "redriven late"}},
		"all of them, many at all": {0, deadletter.PurgeConfig{Unredriven: true, Batch: 1 << 40}, []string{}, []string{"redriven", "redriven late"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ids := openLetters(t, "redriven", "redriven late", "old", "new")
			reapertest.Exec(t, pool, `update job_dead_letter set moved_at = now() - '1m'::interval where job_kind = 'new'`)
			redriveAll(t, pool, deadletter.Filter{JobIDs: ids[:2]})
			reapertest.Exec(t, pool, `update job_dead_letter set redriven_at = moved_at + '1h'::interval where job_kind = 'redriven'`)

			result := purgeAll(t, pool, test.age, test.cfg)

			require.Equal(t, test.left, reapertest.Column(t, pool, `select job_kind from job_dead_letter order by 1`))
			require.Equal(t, test.jobs, reapertest.Column(t, pool, `select job_kind from job_queue order by 1`))
			require.Equal(t, 4-len(test.left), result.RedrivenCount+result.UnredrivenCount)
			require.Equal(t, 4-len(test.jobs), result.JobCount)
			require.Zero(t, result.FailedCount)
			reapertest.RequireAgreement(t, pool)
		})
	}
}

// Without a key two letters can have one id. The purge of the redriven one must not take
// the other, whose job nothing could bring back then.
func TestPurgeRemovesOnlyWhatItWasAskedFor(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "a")
	reapertest.Exec(t, pool, `alter table job_dead_letter drop constraint job_dead_letter_pkey;
		insert into job_dead_letter select (jsonb_populate_record(d, '{"redriven_at": "2020-01-02", "redriven_by": "me"}')).* from job_dead_letter d`)

	require.Equal(t, 1, purgeAll(t, pool, 0, deadletter.PurgeConfig{}).RedrivenCount)

	require.Equal(t, []string{"a"}, reapertest.Column(t, pool, `select job_kind from job_dead_letter where redriven_at is null`))
}

// A queue row without a letter would lie in the state of dead letters for ever,
// and no list would show it. One whose job lives on must stay, whatever its
// letters.
func TestAQueueRowGoesWithItsLastLetter(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		before string // of the job odd, which has two letters, one of them an hour older
		age    time.Duration
		left   string // of it in the queue
		jobs   int    // that the purge removed
	}{
		"all letters go":                 {`select 1`, 0, "", 1},
		"one letter stays":               {`select 1`, 90 * time.Minute, "dead_letter", 0},
		"the one that stays is redriven": {`update job_dead_letter set redriven_at = now(), redriven_by = 'me' where moved_at > now() - '90m'::interval`, 90 * time.Minute, "", 1},
		"the job is back":                {`update job_queue set state = 'ready'`, 0, "ready", 0},
		"the job is running":             {`update job_queue set state = 'leased', lease_until = 'infinity'`, 0, "leased", 0},
		"the queue row is gone":          {`delete from job_queue`, 0, "", 0},
		"its id is there twice":          {`alter table job_queue drop constraint job_queue_pkey; insert into job_queue select * from job_queue`, 0, "", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := openLetters(t, "odd")
			reapertest.Exec(t, pool, `
insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job, moved_at)
select job_id, job_kind, 5, 5, 'older', 'me', job, moved_at - '1h'::interval from job_dead_letter`)
			reapertest.Exec(t, pool, test.before)

			result := purgeAll(t, pool, test.age, deadletter.PurgeConfig{Unredriven: true, Batch: 1})

			require.Equal(t, test.left, reapertest.One[string](t, pool, `select coalesce(max(state), '') from job_queue`))
			require.Equal(t, test.jobs, result.JobCount)
			require.Zero(t, result.FailedCount)
		})
	}
}

// A purge of a year's letters in one transaction would hold back vacuum and lose
// everything at a hiccup. And it is history that should go first, not jobs.
func TestPurgeGoesBatchByBatchAndRedrivenFirst(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, many(10)...)
	redriveAll(t, pool, deadletter.Filter{JobIDs: []string{ids[1], ids[4], ids[5], ids[8], ids[9]}})
	reapertest.Exec(t, pool, `
create table purged (n serial, tx bigint, redriven bool);
create function note() returns trigger language plpgsql as
  $$ begin insert into purged (tx, redriven) values (txid_current(), old.redriven_at is not null); return old; end $$;
create trigger note before delete on job_dead_letter for each row execute function note()`)

	result := purgeAll(t, pool, 0, deadletter.PurgeConfig{Unredriven: true, Batch: 2})

	require.Equal(t, &deadletter.PurgeResult{RedrivenCount: 5, UnredrivenCount: 5, JobCount: 5, Batches: 6}, result)
	require.Equal(t, []string{"true 2", "true 2", "true 1", "false 2", "false 2", "false 1"},
		reapertest.Column(t, pool, `select redriven || ' ' || count(*) from purged group by tx, redriven order by min(n)`))
}

// What a purge did before it broke off is done, and the caller must hear of it.
func TestPurgeReportsWhatWasCommittedBeforeAnError(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, many(6)...)
	redriveAll(t, pool, deadletter.Filter{JobIDs: ids[:4]})
	reapertest.Exec(t, pool, `
create function fail() returns trigger language plpgsql as
  $$ begin if old.redriven_at is null then perform pg_terminate_backend(pg_backend_pid()); end if; return old; end $$;
create trigger fail before delete on job_dead_letter for each row execute function fail()`)

	result, err := deadletter.Purge(t.Context(), pool, deadletter.Store{}, 0, deadletter.PurgeConfig{Unredriven: true, Batch: 3})

	require.Error(t, err)
	require.Equal(t, &deadletter.PurgeResult{RedrivenCount: 4, Batches: 2}, result)
	require.Equal(t, 2, reapertest.One[int](t, pool, `select count(*) from job_dead_letter`))
	reapertest.RequireAgreement(t, pool)
}

// A letter that something else refers to, or that a trigger keeps, must not stop
// the purge of the thousands behind it, nor leave half a job.
func TestPurgePassesWhatCannotGo(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ before, sqlState, text string }{
		"a row refers to the letter": {
			`create table tickets (letter uuid references job_dead_letter); insert into tickets select dead_letter_id from job_dead_letter where job_kind = 'odd'`,
			"23503", `update or delete on table "job_dead_letter" violates foreign key constraint "tickets_letter_fkey" on table "tickets"`,
		},
		"a row refers to the job": {
			`create table tickets (job uuid references job_queue); insert into tickets select job_id from job_queue where job_kind = 'odd'`,
			"23503", `update or delete on table "job_queue" violates foreign key constraint "tickets_job_fkey" on table "tickets"`,
		},
		"a row refers to it until the commit": {
			`create table tickets (job uuid references job_queue deferrable initially deferred); insert into tickets select job_id from job_queue where job_kind = 'odd'`,
			"23503", `update or delete on table "job_queue" violates foreign key constraint "tickets_job_fkey" on table "tickets"`,
		},
		"a trigger keeps the letter": {
			`create function keep() returns trigger language plpgsql as $$ begin if old.job_kind = 'odd' then return null; end if; return old; end $$;
			create trigger keep before delete on job_dead_letter for each row execute function keep()`,
			"", "the write was rejected without an error, by a trigger or a policy",
		},
		"a trigger keeps the queue row": {
			`create function keep() returns trigger language plpgsql as $$ begin if old.job_kind = 'odd' then return null; end if; return old; end $$;
			create trigger keep before delete on job_queue for each row execute function keep()`,
			"", "the write was rejected without an error, by a trigger or a policy",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ids := openLetters(t, "odd", "even", "even", "even")
			reapertest.Exec(t, pool, test.before)
			letter := letterOf(t, pool, ids[0])

			result := purgeAll(t, pool, 0, deadletter.PurgeConfig{Unredriven: true, Batch: 2})

			require.Equal(t, &deadletter.PurgeResult{
				UnredrivenCount: 3, JobCount: 3, Batches: 2, FailedCount: 1,
				Failures: []deadletter.Failure{{letter, ids[0], test.sqlState, test.text}},
			}, result)
			require.Equal(t, []string{"odd"}, reapertest.Column(t, pool, `select job_kind from job_queue`))
			require.Equal(t, []string{"odd"}, reapertest.Column(t, pool, `select job_kind from job_dead_letter`))
			reapertest.RequireAgreement(t, pool)
		})
	}
}

// A thousand letters that cannot go are one story; its telling must not fill the
// memory.
func TestPurgeListsTheFirstFailures(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, many(130)...)
	redriveAll(t, pool, deadletter.Filter{})
	reapertest.Exec(t, pool, `create table tickets (letter uuid references job_dead_letter); insert into tickets select dead_letter_id from job_dead_letter`)

	result := purgeAll(t, pool, 0, deadletter.PurgeConfig{Batch: 50})

	require.Equal(t, 130, result.FailedCount)
	require.Len(t, result.Failures, 100)
	require.Zero(t, result.Batches)
}

// A purge that waits for a long redrive, or takes from under it what it has
// locked, is in its way.
func TestPurgeLeavesWhatIsLocked(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ locking string }{
		"the letter":                 {`select from job_dead_letter where job_kind = 'odd' for update`},
		"the letter, by a redrive":   {`update job_dead_letter set redriven_at = now(), redriven_by = 'me' where job_kind = 'odd'`},
		"the queue row":              {`select from job_queue where job_kind = 'odd' for update`},
		"the queue row, put back":    {`update job_queue set state = 'ready' where job_kind = 'odd'`},
		"the queue row, by a reader": {`select from job_queue where job_kind = 'odd' for share`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := openLetters(t, "odd", "even")
			tx := reapertest.Begin(t, pool)
			reapertest.Exec(t, tx, test.locking)

			result := purgeAll(t, pool, 0, deadletter.PurgeConfig{Unredriven: true})
			require.Equal(t, &deadletter.PurgeResult{UnredrivenCount: 1, JobCount: 1, Batches: 1}, result)
			require.NoError(t, tx.Rollback(t.Context()))
			reapertest.RequireAgreement(t, pool)
			require.Equal(t, 1, purgeAll(t, pool, 0, deadletter.PurgeConfig{Unredriven: true}).JobCount)
		})
	}
}

// Two purges that each take one of a job's two letters must not both leave the
// queue row to the other.
func TestTwoPurgesOfOneJobLeaveNoQueueRow(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "odd")
	reapertest.Exec(t, pool, `update job_queue set state = 'retry_waiting'`)
	dieAgain(t, pool, ids...)
	first := reapertest.Begin(t, pool) // takes the older letter
	require.Equal(t, 1, purgeAll(t, first, time.Minute, deadletter.PurgeConfig{Unredriven: true}).UnredrivenCount)

	require.Zero(t, purgeAll(t, pool, 0, deadletter.PurgeConfig{Unredriven: true}).UnredrivenCount)

	require.NoError(t, first.Commit(t.Context()))
	reapertest.RequireAgreement(t, pool)
	require.Equal(t, 1, purgeAll(t, pool, 0, deadletter.PurgeConfig{Unredriven: true}).JobCount)
	reapertest.RequireAgreement(t, pool)
}

// Without the option the queue is none of a purge's business, not even to read.
func TestPurgeOfRedrivenLettersNeverTouchesTheQueue(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "a", "b")
	redriveAll(t, pool, deadletter.Filter{})
	reapertest.Exec(t, pool, `drop table job_queue`)
	require.Equal(t, 2, purgeAll(t, pool, 0, deadletter.PurgeConfig{}).RedrivenCount)

}
