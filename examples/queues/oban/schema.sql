-- The table of Oban as its migrations up to the 14th make it, without the GIN indexes
-- on args and meta.
create type oban_job_state as enum (
    'available',
    'suspended',
    'scheduled',
    'executing',
    'retryable',
    'completed',
    'discarded',
    'cancelled'
);

create table oban_jobs (
    id           bigserial primary key,
    state        oban_job_state not null default 'available',
    queue        text not null default 'default',
    worker       text not null,
    args         jsonb not null default '{}',
    errors       jsonb[] not null default array[]::jsonb[],
    attempt      integer not null default 0,
    max_attempts integer not null default 20,
    inserted_at  timestamp without time zone not null default timezone('UTC', now()),
    scheduled_at timestamp without time zone not null default timezone('UTC', now()),
    attempted_at timestamp without time zone,
    completed_at timestamp without time zone,
    attempted_by text[],
    discarded_at timestamp without time zone,
    priority     integer not null default 0,
    tags         character varying(255)[] default array[]::character varying[],
    meta         jsonb default '{}',
    cancelled_at timestamp without time zone,
    constraint attempt_range check (attempt between 0 and max_attempts),
    constraint positive_max_attempts check (max_attempts > 0),
    constraint non_negative_priority check (priority >= 0),
    constraint queue_length check (char_length(queue) > 0 and char_length(queue) < 128),
    constraint worker_length check (char_length(worker) > 0 and char_length(worker) < 128)
);

create index oban_jobs_state_queue_priority_scheduled_at_id_index
    on oban_jobs (state, queue, priority, scheduled_at, id);
create index oban_jobs_state_cancelled_at_index on oban_jobs (state, cancelled_at);
create index oban_jobs_state_discarded_at_index on oban_jobs (state, discarded_at);
