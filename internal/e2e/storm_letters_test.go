package e2e_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// ledger logs what comes back to the queue and what leaves it, and what becomes of
// letters, with the transaction that did it.
const letterLedger = `
create table ledger (tx bigint, what text, job uuid);
create function note_job() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    insert into ledger values (txid_current(), 'job removed', old.job_id);
  elsif tg_op = 'INSERT' or old.state = 'dead_letter' then
    insert into ledger values (txid_current(), 'job back', new.job_id);
  end if;
  return null;
end $$;
create function note_letter() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.redriven_at is null then
    insert into ledger values (txid_current(), 'letter removed', old.job_id);
  elsif tg_op = 'UPDATE' then
    insert into ledger values (txid_current(), case when old.redriven_at is null then 'letter redriven' else 'redriven twice' end, old.job_id);
  end if;
  return null;
end $$;
create trigger note after insert or update or delete on job_queue for each row execute function note_job();
create trigger note after update or delete on job_dead_letter for each row execute function note_letter()`

// letterStorm is a queue in which everything happens at once.
type letterStorm struct {
	t    *testing.T
	pool *pgxpool.Pool
}

// A queue row and its letters must never disagree: not while reapers, redrives,
// purges, workers and clean-ups race, and not when their backends are killed.
func TestRowsAndLettersNeverDisagreeInAStorm(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Stale(t, pool, "kind", 200, 4, 5)
	apply := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{Gates: reapertest.OpenGate}), 1000)
	require.Equal(t, 200, apply.DeadLetterCount)
	require.Empty(t, apply.Failures)
	reapertest.Exec(t, pool, `delete from job_queue where hashtext(job_id::text) % 4 = 0`)
	reapertest.Exec(t, pool, letterLedger)
	s := letterStorm{t, pgtest.Connect(t, pool, func(config *pgxpool.Config) { config.MaxConns = 12 })}

	var wg sync.WaitGroup
	for _, act := range []func(context.Context) error{
		s.redrive, s.redrive, s.redrive, s.purge, s.purge, s.reap, s.reap, s.work, s.work, s.cleanUp, s.kill,
	} {
		wg.Go(func() {
			for range 60 {
				if err := act(t.Context()); err != nil && !isKilled(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()

	require.Empty(t, reapertest.Column(t, pool, `
with tx as (
  select tx, job,
    count(*) filter (where what = 'job back') as back,
    count(*) filter (where what = 'letter redriven') as redriven,
    count(*) filter (where what = 'job removed') as removed,
    count(*) filter (where what = 'letter removed') as letters,
    count(*) filter (where what = 'redriven twice') as twice
  from ledger
  group by tx, job
)
select 'back: ' || back || ', letters redriven: ' || redriven || ', removed: ' || removed || ', letters removed: ' || letters || ', twice: ' || twice
from tx
where (back > 0) <> (redriven > 0) or back > 1 or removed > letters or twice > 0`))
	require.NotZero(t, reapertest.One[int](t, pool, `select count(*) from ledger where what = 'job back'`))
	reapertest.Exec(t, pool, `update job_queue set attempts = 0, last_error = null, lease_owner = null where state = 'retry_waiting'`)
	reapertest.RequireAgreement(t, pool)
}

func isKilled(err error) bool {
	var pgErr *pgconn.PgError
	return !errors.As(err, &pgErr) || pgErr.Code == "57P01" || pgErr.Code == "40P01"
}

func (s letterStorm) redrive(ctx context.Context) error {
	_, err := deadletter.Redrive(ctx, s.pool, deadletter.Store{}, "an operator", deadletter.Filter{}, 1+rand.IntN(40))
	return err
}

func (s letterStorm) purge(ctx context.Context) error {
	cfg := deadletter.PurgeConfig{Batch: 1 + rand.IntN(10), Unredriven: rand.IntN(5) == 0}
	age := time.Duration(rand.IntN(3000)) * time.Millisecond
	_, err := deadletter.Purge(ctx, s.pool, deadletter.Store{}, age, cfg)
	return err
}

func (s letterStorm) reap(ctx context.Context) error {
	r, err := reaper.New(s.pool, reaper.Config{Gates: reapertest.OpenGate})
	if err != nil {
		return err
	}
	_, err = r.Apply(ctx, reapertest.Actor, 1+rand.IntN(40))
	return err
}

// work claims jobs and dies over them, at the last try.
func (s letterStorm) work(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
update job_queue set state = 'leased', attempts = max_attempts - 1, lease_owner = 'w', lease_until = now() - '1s'::interval
where job_id in (
  select job_id from job_queue where state = 'retry_waiting' and scheduled_at <= now() limit 20 for update skip locked
)`)
	return err
}

// cleanUp removes dead rows from the queue, as a housekeeper may who relies on the
// letters. It keeps out of the ledger.
func (s letterStorm) cleanUp(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
with gone as (
  delete from job_queue q
  where job_id in (select job_id from job_queue where state = 'dead_letter' limit 3 for update skip locked)
    and exists (select from job_dead_letter d where d.job_id = q.job_id and d.redriven_at is null)
  returning job_id
)
insert into ledger select txid_current(), 'letter removed', job_id from gone`)
	return err
}

// kill ends one backend that is at work.
func (s letterStorm) kill(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle' limit 1`)
	return err
}
