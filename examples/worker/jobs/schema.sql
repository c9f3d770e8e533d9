-- What the sample handlers write. There is deliberately no unique key: that a job
-- has one receipt is due to the fence alone.

create table if not exists worker_receipt (
    job_id  uuid        not null,
    done_by text        not null,
    done_at timestamptz not null default now()
);
