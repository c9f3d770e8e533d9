-- bench.fill_river
insert into river_job
    (kind, state, args, attempt, max_attempts, queue, attempted_by, attempted_at, finalized_at, scheduled_at)
select
    'bench',
    case
        when stale or live then 'running'
        when n % 10 = 3 then 'available'
        else 'completed'
    end::river_job_state,
    jsonb_build_object('order', n, 'note', repeat(md5(n::text), 4)),
    case when stale and nth % 10 = 0 then 5 else 1 + n % 4 end,
    5,
    'default',
    array['worker-' || n % 50],
    case when live then now() else now() - interval '2 hours' end,
    case when not stale and not live and n % 10 <> 3 then now() - interval '1 hour' end,
    now() - interval '2 hours' - random() * interval '1 hour'
from generate_series(1, $1::bigint) as n
cross join lateral (
    select n * $2::bigint / $1::bigint as nth, (n - 1) * $2::bigint / $1::bigint as before
) counted
cross join lateral (
    select nth > before as stale
) staleness
cross join lateral (
    select n % 100 = 7 and not stale as live
) life
