-- leasereaper_guard keeps a reaper from writing to a shard that is moving or has moved. Such
-- a write bypasses the coordinator, so nothing else stops it, and the move would lose it.
--
-- Run this as the owner of the queue, once on the coordinator:
--
--     psql -f guard.sql
--     grant execute on function leasereaper_guard(bigint[]) to reaper_role;
--
-- Citus 11 and later make the function on every node. Citus lets only the owner of a table
-- lock the metadata of its shards, so the function runs as its own owner.
--
-- It locks the metadata of the shards until the end of the transaction; a move takes the same
-- lock in exclusive mode before it copies the last rows. Each statement of the function has a
-- snapshot of its own, so the second check sees what a move has committed while the lock was
-- waited for. A commit that the server has not flushed may be missing from a copy, hence
-- synchronous_commit.
--
-- shards are the ids of a queue's shard and of the shard of its dead letters. SQLSTATE LR001:
-- one of them is not on this node.
create or replace function leasereaper_guard(shards bigint[]) returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise 'leasereaper_guard needs the isolation level read committed' using errcode = '25000';
  end if;
  for locked in 0..1 loop
    if (
      select count(*)
      from pg_dist_placement p
      join pg_dist_local_group g on g.groupid = p.groupid
      where p.shardid = any(shards)
        and p.shardstate = 1
    ) < cardinality(shards) then
      raise 'a shard of % is not on this node', shards using errcode = 'LR001';
    end if;
    if locked = 0 then
      perform lock_shard_metadata(5, array(select s from unnest(shards) s order by s));
    end if;
  end loop;
  if current_setting('synchronous_commit') <> 'remote_apply' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $$;

revoke all on function leasereaper_guard(bigint[]) from public;
