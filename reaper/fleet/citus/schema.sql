-- The reference schema for Citus: the tables of reaper/schema.sql, distributed by the job. Run
-- it on the coordinator, and guard.sql after it. Every statement may run again.
--
--     psql -f schema.sql -f guard.sql
--
-- A job and its dead letters are on one node, since both tables are distributed by job_id and
-- co-located. Citus wants the distribution column in each key, so the letters' key has two
-- columns.

create table if not exists job_queue (
    job_id       uuid        primary key default gen_random_uuid(),
    job_kind     text        not null,
    state        text        not null default 'ready',
    payload      jsonb       not null default '{}',
    attempts     integer     not null default 0,
    max_attempts integer     not null default 5,
    scheduled_at timestamptz not null default now(),
    lease_owner  text,
    lease_until  timestamptz,
    last_error   text
);

-- The reaper's index: oldest lease first, and only the leased rows are in it.
create index if not exists job_queue_lease_until_idx
    on job_queue (lease_until)
    where state = 'leased';

-- The workers' index: what may be claimed next.
create index if not exists job_queue_scheduled_at_idx
    on job_queue (scheduled_at)
    where state in ('ready', 'retry_waiting');

create table if not exists job_dead_letter (
    dead_letter_id uuid        not null default gen_random_uuid(),
    job_id         uuid        not null,
    job_kind       text        not null,
    attempts       integer     not null,
    max_attempts   integer     not null,
    final_error    text        not null,
    moved_by       text        not null,
    moved_at       timestamptz not null default now(),
    job            jsonb       not null, -- the whole queue row as it died, its attempts bumped
    redriven_at    timestamptz,          -- when the job was sent back to the queue
    redriven_by    text,
    primary key (dead_letter_id, job_id)
);

create index if not exists job_dead_letter_job_id_idx
    on job_dead_letter (job_id);

create table if not exists queue_config (
    key        text        primary key,
    value      text        not null,
    updated_at timestamptz not null default now(),
    updated_by text        not null default current_user
);

select create_distributed_table('job_queue', 'job_id')
where not exists (select 1 from pg_dist_partition where logicalrelid = 'job_queue'::regclass);

select create_distributed_table('job_dead_letter', 'job_id', colocate_with => 'job_queue')
where not exists (select 1 from pg_dist_partition where logicalrelid = 'job_dead_letter'::regclass);

select create_reference_table('queue_config')
where not exists (select 1 from pg_dist_partition where logicalrelid = 'queue_config'::regclass);
