package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
)

// chain is a table that a trigger keeps of the reap jobs: when one is added and when
// one has ended.
const chain = `
create table chain (job_id uuid, became text, attempts integer, by text);
create function chain() returns trigger language plpgsql as $$
begin
  insert into chain values (new.job_id, new.state, new.attempts, current_setting('application_name'));
  return null;
end $$;
create trigger chain after insert or update of state on job_queue
  for each row when (new.job_kind = 'queue.lease.reap') execute function chain()`

// The worker that is at the reap job is killed, in the middle of it. Without the
// watchdog in another worker nothing would ever be reaped again; with a second chain
// everything would be, twice.
func TestTheReapJobOfAKilledWorkerComesBackAndGoesOn(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	fixture.Exec(t, pool, chain)
	args := []string{"--reap-as-job", "--reap-every", "50ms", "--watchdog-grace", "300ms", "--lease", "1s"}

	// Whoever applies waits for an operator who is about to change a gate.
	operator, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer operator.Rollback(t.Context()) //nolint:errcheck // done below
	fixture.Exec(t, operator, `select from queue_config for update`)
	first := startProgram(t, pool, "first", args...)
	fixture.Eventually(t, pool, `select exists (select from pg_stat_activity
		where application_name = 'first' and wait_event_type = 'Lock' and query like '-- gates.read%')
		and exists (select from job_queue where job_kind = 'queue.lease.reap' and state = 'leased')
		and exists (select from pg_locks l join pg_stat_activity a using (pid)
			where a.application_name = 'first' and l.relation = 'job_queue'::regclass and l.mode = 'RowExclusiveLock')`)
	first.kill()
	require.NoError(t, operator.Rollback(t.Context()))
	fixture.Eventually(t, pool, `select count(*) = 0 from pg_stat_activity where application_name = 'first'`)

	dead := fixture.One[string](t, pool, `select job_id::text from job_queue
		where job_kind = 'queue.lease.reap' and state = 'leased' and lease_owner like 'first/%'`)
	require.Equal(t, 1, fixture.One[int](t, pool, `select count(*) from job_queue`))
	fixture.Exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		values ('walk_the_dog', 'leased', 'long dead', now())`)
	startProgram(t, pool, "second", args...)
	startProgram(t, pool, "third", args...)

	fixture.Eventually(t, pool, `select exists (select from chain where job_id = $1 and became = 'retry_waiting' and attempts = 1)`, dead)
	fixture.Eventually(t, pool, `select exists (select from chain where job_id = $1 and became = 'succeeded')`, dead)
	fixture.Eventually(t, pool, `select state = 'retry_waiting' from job_queue where job_kind = 'walk_the_dog'`)
	fixture.Eventually(t, pool, `select count(*) >= 10 from chain where became = 'succeeded'`)
	require.Equal(t, 1, fixture.One[int](t, pool, `select (count(*) filter (where became = 'ready')
		- count(*) filter (where became = 'succeeded'))::int from chain`), "one added for each that ended, and the first")
	require.Equal(t, 1, fixture.One[int](t, pool, `select count(*) from job_queue
		where job_kind = 'queue.lease.reap' and state in ('ready', 'retry_waiting', 'leased')`))
}
