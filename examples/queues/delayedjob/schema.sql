-- The table of delayed_job_active_record 4.1 as its migration makes it on
-- PostgreSQL.
create table delayed_jobs (
    id         bigserial primary key,
    priority   integer not null default 0,
    attempts   integer not null default 0,
    handler    text not null,
    last_error text,
    run_at     timestamp(6) without time zone,
    locked_at  timestamp(6) without time zone,
    failed_at  timestamp(6) without time zone,
    locked_by  character varying,
    queue      character varying,
    created_at timestamp(6) without time zone not null default timezone('UTC', now()),
    updated_at timestamp(6) without time zone not null default timezone('UTC', now())
);

create index delayed_jobs_priority on delayed_jobs (priority, run_at);
