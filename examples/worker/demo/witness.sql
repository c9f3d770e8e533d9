-- The demo's witness: each change of a job's state, as the server saw it. The
-- service knows nothing of it. The outcomes have the names that the metrics use.

create table demo_history (
    seq      bigint  generated always as identity primary key,
    job_id   uuid    not null,
    job_kind text    not null,
    became   text    not null,
    attempts integer not null,
    reason   text    not null,
    owner    text    not null, -- of the lease that ended, '' when none did
    outcome  text    not null, -- how it ended, '' when none did
    by       text    not null  -- the process that wrote it
);

create function demo_outcome(old job_queue, new job_queue) returns text language sql immutable as $$
  select case
    when old.state is distinct from 'leased' then ''
    when new.state = 'succeeded' then 'succeeded'
    when new.state = 'dead_letter' and new.last_error = 'lease_expired_reaped_at_max_attempts' then 'moved_to_dead_letter'
    when new.state = 'dead_letter' then 'buried'
    when new.attempts = old.attempts then 'given_back'
    when new.last_error = 'lease_expired_reaped' then 'reset_to_retry_waiting'
    else 'retried'
  end
$$;

create function demo_witness() returns trigger language plpgsql as $$
begin
  insert into demo_history (job_id, job_kind, became, attempts, reason, owner, outcome, by)
  values (
    new.job_id, new.job_kind, new.state, new.attempts, coalesce(new.last_error, ''), coalesce(old.lease_owner, ''),
    demo_outcome(old, new), current_setting('application_name')
  );
  return null;
end
$$;

create trigger demo_witness
    after update on job_queue
    for each row when (old.state is distinct from new.state)
    execute function demo_witness();
