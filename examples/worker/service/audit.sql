-- What each apply did, for the console's page of the history.

create table if not exists reaper_audit (
    applied_at        timestamptz not null default now(),
    actor             text        not null,
    reset_count       integer     not null,
    dead_letter_count integer     not null,
    failed_count      integer     not null,
    result            jsonb       not null
);

create index if not exists reaper_audit_applied_at_idx
    on reaper_audit (applied_at);
