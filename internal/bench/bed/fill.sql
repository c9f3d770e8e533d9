-- bed.fill
insert into job_queue
    (job_kind, state, payload, attempts, max_attempts, scheduled_at, lease_owner, lease_until)
select
    'kind-' || n % 20,
    case
        when stale or live then 'leased'
        when n % 10 = 3 then 'ready'
        else 'succeeded'
    end,
    jsonb_build_object('order', n, 'note', repeat(md5(n::text), 6)),
    case when stale and nth * $4::bigint % 100 < $4::bigint then 4 else n % 4 end,
    5,
    now() - interval '2 hours' + random() * interval '1 hour',
    case when stale or live then 'worker-' || n % 50 end,
    case
        when live then now() + interval '1 day'
        when stale and $3::boolean then now() - interval '1 hour' + nth * interval '1 millisecond'
        when stale then now() - interval '1 minute' - random() * interval '1 hour'
    end
from generate_series(1, $1::bigint) as n
cross join lateral (
    -- which of the stale rows it is, if it is one, and the number of those before it
    select
        case when $3::boolean then n else n * $2::bigint / $1::bigint end as nth,
        case when $3::boolean then n - 1 else (n - 1) * $2::bigint / $1::bigint end as before
) counted
cross join lateral (
    select nth > before and nth <= $2::bigint as stale
) staleness
cross join lateral (
    select n % 100 = 7 and not stale as live
) life
