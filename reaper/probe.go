package reaper

import (
	"context"
	"fmt"
)

// sqlTryWrite locks, of the leases that nobody else has locked, the one that ends
// last, which is most likely a living worker's, and writes it as it is. It is
// rolled back. The server checks that the queue takes writes, and waits for the
// table's lock, also when there is no such row; then it does not find out whether
// there is room on the disk, but no lease is at stake either. A trigger that fires
// only where a value differs is not called. Served by job_queue_lease_until_idx and
// the queue's key.
const sqlTryWrite = `-- reaper.try_write
update {queue} q
set {state} = q.{state},
  {lease_until} = q.{lease_until}
where q.{job_id} = (
  select q.{job_id}
  from {queue} q
  where q.{state} = {leased}
    and ` + keyed + `
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
set {state} = q.{state}
where now() is null`

	sqlLockLetters = `-- reaper.lock_letters
insert into {letters} (job_id)
select null
where now() is null`
)

// tryWrite claims a job and writes it, as a worker that renews its lease does, and
// rolls that back. It waits for a lock for LockTimeout at most. It does not read
// the gates, since it changes nothing.
func (r *Reaper) tryWrite(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	tx, err := r.openTimed(ctx)
	if err != nil {
		return fmt.Errorf("reaper: try to write: %w", wrapReadOnly(err))
	}
	defer tx.Close(ctx)
	batch := tx.Batch()
	batch.Queue(r.sql.tryWrite)
	if err := tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("reaper: try to write: %w", wrapReadOnly(err))
	}
	return nil
}
