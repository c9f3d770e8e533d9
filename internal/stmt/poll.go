package stmt

// sqlPoll reads what a loop needs to know before it reaps or sleeps: whether a
// lease is stale, from a cursor on; how many microseconds are left until the next
// one is; the end up to which leases of every kind are stale now, which is the
// next cursor; and when the server started and whether it is a standby. Served by
// job_queue_lease_until_idx.
//
//	$1 scope
//	$2 lease_until  timestamptz of the cursor, NULL to begin at the oldest
const sqlPoll = `-- reaper.poll
select
  coalesce((
    select true
    from {queue} q
    where ` + condStale + `
      and ` + condHasKey + `
      and {key} >= {key(}coalesce($2::timestamptz, '-infinity'){)key}
    order by {key}
    limit 1
  ), false) as stale,
  (
    {due}
  )::bigint as due_micros,
  now() - {most_grace} as stale_before,
  now() as now,
  pg_postmaster_start_time() as started_at,
  (extract(epoch from now() - pg_postmaster_start_time()) * 1000000)::bigint as uptime_micros,
  pg_is_in_recovery() as standby`

// sqlNextExpiry is how many microseconds are left until the next lease is stale.
const sqlNextExpiry = `select extract(epoch from {end} - (now() - {grace})) * 1000000
    from {queue} q
    where {is_leased}{only}
      and {key} >= {key(}now() - {grace}{)key}
      and {key} < {key(}now() + interval '1 day'{)key}
    order by {key}
    limit 1`

// sqlNextExpiryByKind is sqlNextExpiry where the kinds have graces of their own, so that the
// next one is not the first of the index: it reads all live leases.
const sqlNextExpiryByKind = `select extract(epoch from min({end} + {kind_grace}) - now()) * 1000000
    from {queue} q
    where {is_leased}{only}
      and {key} >= {key(}now() - {most_grace}{)key}
      and {key} < {key(}now() + interval '1 day'{)key}
      and {key} >= {key(}now() - {kind_grace}{)key}`

// sqlTryWrite locks, of the leases that nobody else has locked, the one that ends
// last, which is most likely a living worker's, and writes it as it is. It is
// rolled back. The server checks that the queue takes writes, and waits for the
// table's lock, also when there is no such row; then it does not find out whether
// there is room on the disk, but no lease is at stake either. A trigger that fires
// only where a value differs is not called. Served by job_queue_lease_until_idx and
// the queue's key.
const sqlTryWrite = `-- reaper.try_write
update {queue} q
set {renew}
where q.{job_id} = (
  select q.{job_id}
  from {queue} q
  where {is_leased}
    and ` + condHasKey + `
    and q.{lease_until} < 'infinity'
  order by q.{lease_until} desc
  limit 1
  for update of q skip locked
)`

// Writes of no row. They wait for the locks of their tables alone, those of partitions
// included: the server does not know before it runs them that there is no row.
const (
	sqlLockQueue = `-- reaper.lock_queue
update {queue} q
set {touch}
where now() is null`

	sqlLockLetters = `-- reaper.lock_letters
insert into {letters} (job_id)
select null
where now() is null`
)
