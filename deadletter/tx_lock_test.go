package deadletter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

const tickets = `create table tickets (kind text, letter uuid references job_dead_letter);
insert into tickets select job_kind, dead_letter_id from job_dead_letter where job_kind like 'odd%'`

// A transaction that somebody left open would hold up a purge of everything, for
// as long as it lasts.
func TestPurgeWaitsForNobodyBeyondTheLockTimeout(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "even", "odd", "even")
	reapertest.Exec(t, pool, tickets)
	tx := reapertest.Begin(t, pool)
	reapertest.Exec(t, tx, `select from tickets for update`)
	letter := letterOf(t, pool, ids[1])

	for _, limited := range []int{1, 1000} {
		result, err := deadletter.Purge(t.Context(), pool, deadletter.Store{LockTimeout: 50 * time.Millisecond}, 0,
			deadletter.PurgeConfig{Unredriven: true, Batch: limited})

		require.NoError(t, err)
		require.Equal(t, 1, result.FailedCount)
		require.Equal(t, letter, result.Failures[0].DeadLetterID)
		require.Equal(t, "55P03", result.Failures[0].SQLState)
		require.Contains(t, result.Failures[0].Error, "lock timeout")
		require.Equal(t, []string{"odd"}, reapertest.Column(t, pool, `select job_kind from job_dead_letter`))
		reapertest.RequireAgreement(t, pool)
	}
}

// An insert that somebody left open, with a key that a redriven job has, would
// hold up all the other jobs.
func TestRedriveWaitsForNobodyBeyondTheLockTimeout(t *testing.T) {
	t.Parallel()
	const only = `create unique index only_one on job_queue (job_kind) where state <> 'dead_letter' and job_kind = 'odd'`

	tests := map[string]struct{ before, locking string }{
		"a unique key, the row is there": {only, `insert into job_queue (job_kind) values ('odd')`},
		"a unique key, the row is gone":  {only + `; delete from job_queue`, `insert into job_queue (job_kind) values ('odd')`},
		"a parent": {
			`create table kinds (kind text primary key); insert into kinds values ('even'), ('odd'); delete from job_queue;
			alter table job_queue add foreign key (job_kind) references kinds`,
			`delete from kinds where kind = 'odd'`,
		},
		"a parent that is asked for at the commit": {
			`create table kinds (kind text primary key); insert into kinds values ('even'), ('odd'); delete from job_queue;
			alter table job_queue add foreign key (job_kind) references kinds deferrable initially deferred`,
			`delete from kinds where kind = 'odd'`,
		},
		"a table, for one job": {
			`create table notes (); create function note() returns trigger language plpgsql as
				$$ begin if new.job_kind = 'odd' then insert into notes default values; end if; return new; end $$;
			create trigger note before update on job_queue for each row execute function note()`,
			`lock table notes`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ids := openLetters(t, "even", "odd", "even", "even")
			reapertest.Exec(t, pool, test.before)
			letter := letterOf(t, pool, ids[1])
			tx := reapertest.Begin(t, pool)
			reapertest.Exec(t, tx, test.locking)

			for _, filter := range []deadletter.Filter{{}, {JobIDs: ids[1:2]}} {
				result, err := deadletter.Redrive(t.Context(), pool, deadletter.Store{LockTimeout: 50 * time.Millisecond},
					operator, filter, 10)
				require.NoError(t, err)
				require.Len(t, result.Failures, 1)
				require.Equal(t, letter, result.Failures[0].DeadLetterID)
				require.Equal(t, "55P03", result.Failures[0].SQLState)
				require.Equal(t, 3, reapertest.One[int](t, pool, `select count(*) from job_dead_letter where redriven_at is not null`))
			}
			require.NoError(t, tx.Rollback(t.Context()))
			require.Equal(t, ids[1:2], jobsOf(redriveAll(t, pool, deadletter.Filter{})))
			reapertest.RequireAgreement(t, pool)
		})
	}
}

// Each locked row of a hundred would cost the whole wait, and those that are not
// locked would be held all the while.
func TestManyLockedRowsAreFoundSoon(t *testing.T) {
	t.Parallel()
	kinds := many(80)
	for i := range 40 {
		kinds[2*i] = fmt.Sprintf("odd-%d", i)
	}
	pool, _ := openLetters(t, kinds...)
	reapertest.Exec(t, pool, tickets)
	tx := reapertest.Begin(t, pool)
	reapertest.Exec(t, tx, `delete from tickets`)
	began := time.Now()

	result, err := deadletter.Purge(t.Context(), pool, deadletter.Store{LockTimeout: time.Second}, 0,
		deadletter.PurgeConfig{Unredriven: true})

	require.NoError(t, err)
	require.Equal(t, 40, result.FailedCount)
	require.Equal(t, 40, result.UnredrivenCount)
	require.Less(t, time.Since(began), 20*time.Second)
}

// 0 is no bound at all for PostgreSQL, and a number that it does not take would
// be an error of every call.
func TestTheLockTimeoutIsInWholeMilliseconds(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		timeout time.Duration
		want    string
	}{
		"the default":             {0, "1s"},
		"less than a millisecond": {1, "1ms"},
		"a part of one":           {1500 * time.Microsecond, "2ms"},
		"a whole number":          {2 * time.Second, "2s"},
		"more than all":           {1<<63 - 1, "2147483647ms"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := openLetters(t, "a", "b")
			reapertest.Exec(t, pool, `create table seen (timeout text);
create function note() returns trigger language plpgsql as
  $$ begin insert into seen values (current_setting('lock_timeout')); return coalesce(new, old); end $$;
create trigger note before update or delete on job_dead_letter for each row execute function note()`)
			store := deadletter.Store{LockTimeout: test.timeout}

			_, err := deadletter.Redrive(t.Context(), pool, store, operator, deadletter.Filter{}, 1)
			require.NoError(t, err)
			_, err = deadletter.Purge(t.Context(), pool, store, 0, deadletter.PurgeConfig{Unredriven: true})
			require.NoError(t, err)

			require.Equal(t, []string{test.want, test.want, test.want}, reapertest.Column(t, pool, `select timeout from seen`))
		})
	}
}

// A caller's transaction has its own bound, or none, and keeps it: what the caller
// does next may have to wait for longer.
func TestACallersLockTimeoutStays(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "odd", "even")
	reapertest.Exec(t, pool, tickets)
	other := reapertest.Begin(t, pool)
	reapertest.Exec(t, other, `delete from tickets`)
	tx := reapertest.Begin(t, pool)
	reapertest.Exec(t, tx, `set local lock_timeout = '40ms'`)

	result := purgeAll(t, tx, 0, deadletter.PurgeConfig{Unredriven: true})

	require.Equal(t, 1, result.FailedCount)
	require.Equal(t, 1, result.UnredrivenCount)
	require.Equal(t, 1, redriveAll(t, tx, deadletter.Filter{}).RedrivenCount)
	require.Equal(t, "40ms", reapertest.One[string](t, tx, `show lock_timeout`))
}
