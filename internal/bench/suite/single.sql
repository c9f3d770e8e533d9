-- bench.single
with gates as materialized (
    select key, value
    from queue_config
    where key in ('queue.job_substrate.enabled', 'queue.lease.reaper_enabled',
        'queue.lease.reaper_dry_run_only', 'queue.retry.backoff_base_sec')
    for share
),
setting as materialized (
    select
        coalesce(bool_or(value::boolean) filter (where key = 'queue.job_substrate.enabled'), false)
            and coalesce(bool_or(value::boolean) filter (where key = 'queue.lease.reaper_enabled'), false)
            and not coalesce(bool_or(value::boolean) filter (where key = 'queue.lease.reaper_dry_run_only'), true)
            as open,
        coalesce(max(value::bigint) filter (where key = 'queue.retry.backoff_base_sec'), 10) as base_sec
    from gates
),
claimed as materialized (
    select q.ctid as tid, q.job_id, q.lease_until, q.attempts + 1 >= q.max_attempts as spent
    from job_queue q
    where q.state = 'leased' and q.lease_until is not null and q.lease_until < now()
        and (select open from setting)
    order by q.lease_until, q.job_id
    limit $2::bigint
    for update of q skip locked
),
reaped as (
    update job_queue q
    set state = case when q.attempts + 1 >= q.max_attempts then 'dead_letter' else 'retry_waiting' end,
        attempts = q.attempts + 1,
        last_error = case
            when q.attempts + 1 >= q.max_attempts then 'lease_expired_reaped_at_max_attempts'
            else 'lease_expired_reaped'
        end,
        scheduled_at = case
            when q.attempts + 1 >= q.max_attempts then q.scheduled_at
            else now() + make_interval(secs => (select base_sec from setting) * 2 ^ least(q.attempts, 10))
        end,
        lease_owner = null,
        lease_until = null
    where q.ctid = any(array(select tid from claimed))
    returning q.job_id, q.attempts, q.scheduled_at
),
moved as (
    insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
    select q.job_id, q.job_kind, q.attempts + 1, q.max_attempts, 'lease_expired_reaped_at_max_attempts', $1::text,
        to_jsonb(q) || jsonb_build_object('attempts', q.attempts + 1)
    from job_queue q
    where q.ctid = any(array(select tid from claimed where spent))
    returning job_id, dead_letter_id
)
select c.job_id, c.spent, s.attempts, s.scheduled_at, m.dead_letter_id
from claimed c
join reaped s on s.job_id = c.job_id
left join moved m on m.job_id = c.job_id
order by c.lease_until, c.job_id
