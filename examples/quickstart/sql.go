package main

// sqlFill inserts a job of each sort. Those of worker-1 and worker-2 are stale:
// nobody renewed the leases.
const sqlFill = `-- quickstart.fill
insert into job_queue (job_kind, state, attempts, max_attempts, lease_owner, lease_until, scheduled_at)
values
  ('send_invoice', 'leased', 0, 5, 'worker-1', now() - interval '90 s', now() - interval '5 min'),
  ('resize_image', 'leased', 2, 5, 'worker-1', now() - interval '75 s', now() - interval '5 min'),
  ('charge_card',  'leased', 4, 5, 'worker-2', now() - interval '60 s', now() - interval '5 min'),
  ('send_email',   'leased', 0, 3, 'worker-3', now() + interval '5 min', now() - interval '5 min'),
  ('build_report', 'ready',         0, 5, null, null, now()),
  ('sync_ledger',  'retry_waiting', 1, 5, null, null, now() + interval '2 min'),
  ('send_receipt', 'succeeded',     1, 5, null, null, now() - interval '1 h')`

// sqlJobs returns a line for each job. The clock says how far the time is that
// matters in the job's state.
const sqlJobs = `-- quickstart.jobs
select concat_ws(e'\t', job_kind, state, attempts || ' of ' || max_attempts, coalesce(lease_owner, '-'),
  case
    when lease_until < now() then 'overdue ' || floor(extract(epoch from now() - lease_until)) || 's'
    when lease_until is not null then 'live ' || ceil(extract(epoch from lease_until - now())) || 's'
    when state = 'retry_waiting' then 'waits ' || ceil(extract(epoch from scheduled_at - now())) || 's'
    else '-'
  end,
  coalesce(last_error, '-'))
from job_queue
order by job_kind`

// sqlDeadLetters returns a line for each dead letter.
const sqlDeadLetters = `-- quickstart.dead_letters
select concat_ws(e'\t', job_kind, attempts || ' of ' || max_attempts, moved_by, final_error)
from job_dead_letter
order by moved_at, job_kind`
