-- bench.fill_graphile
with task as (
    insert into graphile_worker._private_tasks (identifier)
    values ('bench')
    returning id
)
insert into graphile_worker._private_jobs
    (task_id, payload, attempts, max_attempts, run_at, locked_at, locked_by)
select
    task.id,
    json_build_object('order', n, 'note', repeat(md5(n::text), 6)),
    1 + n % 4,
    5,
    now() - interval '2 hours' - random() * interval '1 hour',
    case when stale then now() - interval '5 hours' when live then now() end,
    case when stale or live then 'worker-' || n % 50 end
from task, generate_series(1, $1::bigint) as n
cross join lateral (
    select n * $2::bigint / $1::bigint > (n - 1) * $2::bigint / $1::bigint as stale
) staleness
cross join lateral (
    select n % 100 = 7 and not stale as live
) life
