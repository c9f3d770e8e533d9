-- bench.fill_pgboss
insert into pgboss.job
    (name, data, state, retry_limit, retry_count, retry_delay, retry_backoff, dead_letter, policy, expire_in,
        start_after, started_on, completed_on)
select
    'bench',
    jsonb_build_object('order', n, 'note', repeat(md5(n::text), 4)),
    case
        when stale or live then 'active'
        when n % 10 = 3 then 'created'
        else 'completed'
    end::pgboss.job_state,
    4,
    case when stale and nth % 10 = 0 then 4 else n % 4 end,
    10,
    true,
    'dead',
    'standard',
    interval '15 minutes',
    now() - interval '2 hours' - random() * interval '1 hour',
    case when live then now() + interval '1 day' when n % 10 <> 3 or stale then now() - interval '2 hours' end,
    case when not stale and not live and n % 10 <> 3 then now() - interval '1 hour' end
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
