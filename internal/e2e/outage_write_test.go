package e2e_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// in the log

// failing has every write to the queue fail with an SQLSTATE.
const failing = `create function fail() returns trigger language plpgsql as
		$$ begin raise 'no write' using errcode = '%s'; end $$;
	create trigger fail before update on job_queue for each row execute function fail()`

// readOnly has the sessions that begin from now on write nothing.
const readOnly = `do $$ begin
	execute format('alter database %I set default_transaction_read_only = on', current_database());
end $$`

const writable = `do $$ begin
	execute format('alter database %I reset default_transaction_read_only', current_database());
end $$`

// The database answered all the time, but no worker could renew. Reaping when it
// is over would start each running job a second time, and one that was on its last
// try would be dead.
func TestNoRunningJobIsGivenAwayAfterWritesFailed(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		settings   map[string]string // of the reaper's sessions
		begin, end string
		lock       string // held from the beginning to the end
	}{
		"a read-only database":         {begin: readOnly, end: writable},
		"no room on the disk":          {begin: fmt.Sprintf(failing, "53100"), end: `drop trigger fail on job_queue`},
		"an I/O error":                 {begin: fmt.Sprintf(failing, "58030"), end: `drop trigger fail on job_queue`},
		"the table is altered":         {lock: `lock table job_queue in access exclusive mode`},
		"an index is being made":       {settings: map[string]string{"lock_timeout": "50ms"}, lock: `lock table job_queue in share mode`},
		"a lock and statement_timeout": {settings: map[string]string{"statement_timeout": "20ms"}, lock: `lock table job_queue in access exclusive mode`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := reapertest.OpenQueue(t)
			pool := reapertest.WithSettings(t, admin, test.settings)
			log := &reapertest.Logbook{}
			passed, failed := make(chan reaper.Pass, 1), &atomic.Int64{}
			reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger(), LockTimeout: 50 * time.Millisecond}), reaper.RunConfig{
				Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: 2 * time.Second,
				OnPass: func(_ context.Context, pass reaper.Pass) {
					if pass.Err != nil {
						failed.Add(1)
					}
					select {
					case passed <- pass:
					default:
					}
				},
			})
			require.NoError(t, (<-passed).Err)
			ended := leases(t, admin)

			holder := reapertest.Begin(t, admin)
			reapertest.Exec(t, holder, test.begin+test.lock)
			if test.lock == "" {
				require.NoError(t, holder.Commit(t.Context()))
			}
			pool.Reset()
			require.Eventually(t, func() bool { return log.Count("pass failed") == 1 && failed.Load() > 5 }, reapertest.Waiting, reapertest.Tick)
			require.Eventually(t, func() bool { return reapertest.One[time.Time](t, admin, `select now()`).After(ended) }, reapertest.Waiting, reapertest.Tick)
			before := log.Count(reapertest.Renewing)
			if test.lock != "" {
				require.NoError(t, holder.Rollback(t.Context()))
			}
			reapertest.Exec(t, admin, test.end)
			pool.Reset()

			require.Eventually(t, func() bool { return log.Count(reapertest.Renewing) > before }, reapertest.Waiting, reapertest.Tick)
			renew(t, admin)
			requireDeadAlone(t, admin)
			require.Eventually(t, func() bool { return log.Count("reaper recovered") == 1 }, reapertest.Waiting, reapertest.Tick)
			require.Equal(t, before+1, log.Count(reapertest.Renewing))
		})
	}
}

// Jobs whose leases end soon: those of living workers, and of dead ones.
const livingJobs, deadJobs = 10, 3

// leases inserts them, all on their last try but one, and returns when they end.
func leases(t *testing.T, db reapertest.Execer) time.Time {
	t.Helper()
	return reapertest.One[time.Time](t, db, `with q as (
		insert into job_queue (job_kind, state, lease_owner, lease_until)
		select case when i <= $1 then 'running' else 'dead' end, 'leased', 'worker-' || i, now() + interval '2 seconds'
		from generate_series(1, $1::int + $2) i
		returning lease_until)
		select max(lease_until) from q`, livingJobs, deadJobs)
}

// renew renews the leases of the living.
func renew(t *testing.T, db reapertest.Execer) {
	t.Helper()
	reapertest.Exec(t, db, `update job_queue set lease_until = now() + interval '1 minute' where state = 'leased' and job_kind = 'running'`)
}

// requireDeadAlone requires that the jobs of the dead are reset, and those of the
// living are as they were.
func requireDeadAlone(t *testing.T, db reapertest.Execer) {
	t.Helper()
	require.Eventually(t, func() bool { return reapertest.States(t, db)["retry_waiting"] == deadJobs }, reapertest.Waiting, reapertest.Tick)
	require.Equal(t, livingJobs, reapertest.One[int](t, db, `select count(*)::int from job_queue
		where job_kind = 'running' and state = 'leased' and attempts = 0`))
}

// On a standby nothing can be reaped, and no worker can renew. When it becomes the
// primary all of them come at once.
func TestNoRunningJobIsGivenAwayAfterAPromotion(t *testing.T) {
	t.Parallel()
	primary, standby := reapertest.WithStandby(t)
	ended := leases(t, primary)
	reapertest.CaughtUp(t, primary, standby)
	log := &reapertest.Logbook{}
	reapertest.Run(t, reapertest.New(t, standby, reaper.Config{Logger: log.Logger()}), reaper.RunConfig{
		Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: 2 * time.Second,
	})
	require.Eventually(t, func() bool { return log.Count("pass failed") == 1 }, reapertest.Waiting, reapertest.Tick)
	require.Eventually(t, func() bool { return reapertest.One[time.Time](t, standby, `select now()`).After(ended) }, reapertest.Waiting, reapertest.Tick)
	before := log.Count(reapertest.Renewing)

	reapertest.Exec(t, standby, `select pg_promote()`)

	require.Eventually(t, func() bool { return log.Count(reapertest.Renewing) > before }, reapertest.Waiting, reapertest.Tick)
	renew(t, standby)
	requireDeadAlone(t, standby)
	require.Equal(t, before+1, log.Count(reapertest.Renewing))
}

// inTurn is a pool of a primary and one of its standby behind one address, to which
// a proxy sends what only reads in turn.
type inTurn struct {
	primary, standby *pgxpool.Pool
	reads            *int
}

func (p inTurn) Begin(ctx context.Context) (pgx.Tx, error) { return p.primary.Begin(ctx) }

func (p inTurn) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	if options.AccessMode == pgx.ReadOnly {
		*p.reads++
		if *p.reads%2 == 0 {
			return p.standby.BeginTx(ctx, options)
		}
	}
	return p.primary.BeginTx(ctx, options)
}

// A loop that takes each turn for a restart never reaps.
func TestTwoServersBehindOneAddressAreNoRestart(t *testing.T) {
	t.Parallel()
	primary, standby := reapertest.WithStandby(t)
	reapertest.Stale(t, primary, "kind", 3, 0, 5)
	reapertest.CaughtUp(t, primary, standby)
	log := &reapertest.Logbook{}
	reapertest.Run(t, reapertest.New(t, inTurn{primary, standby, new(int)}, reaper.Config{Logger: log.Logger()}), reaper.RunConfig{
		Interval: 50 * time.Millisecond, MinInterval: time.Millisecond, Settle: time.Second,
	})

	for round := 1; round <= 5; round++ {
		require.Eventually(t, func() bool { return reapertest.States(t, primary)["retry_waiting"] == 3*round }, reapertest.Waiting, reapertest.Tick)
		reapertest.Stale(t, primary, "kind", 3, 0, 5)
	}
	require.LessOrEqual(t, log.Count(reapertest.Renewing), 1) // the primary may be young
}

// A batch that exceeds the server's statement_timeout exceeds it each time. The
// loop has to make it smaller, and nothing has to wait for that.
func TestRunMakesABatchSmallerThatTakesTooLong(t *testing.T) {
	t.Parallel()
	admin := reapertest.OpenQueue(t)
	reapertest.Stale(t, admin, "kind", 100, 0, 5)
	reapertest.Exec(t, admin, `create function slow() returns trigger language plpgsql as
			$$ begin perform pg_sleep(0.01); return new; end $$;
		create trigger slow before update on job_queue for each row execute function slow()`)
	log := &reapertest.Logbook{}
	pool := reapertest.WithSettings(t, admin, map[string]string{"statement_timeout": "200ms"})

	reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Logger: log.Logger()}), reaper.RunConfig{
		Interval: time.Hour, MinInterval: time.Millisecond, Settle: 1,
	})

	require.Eventually(t, func() bool { return reapertest.States(t, admin)["retry_waiting"] == 100 }, reapertest.Waiting, reapertest.Tick)
	require.Zero(t, log.Count(reapertest.Renewing))
}
