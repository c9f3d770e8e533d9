// Package citus finds the shards of a queue that Citus distributes, as members of a fleet:
// one reaper for each shard, on the node that has it.
//
// Citus refuses an apply on the whole table, since an apply locks rows of many shards. A shard
// is an ordinary table on one node, and so are the shard of its dead letters and the copy of
// the settings on that node. [Shards.Members] reads them from the coordinator's catalog, and
// makes a pool for each node.
//
//	shards, err := citus.New(coordinator, citus.Config{Reaper: reaper.Config{Grace: time.Second}})
//	if err != nil {
//		return err
//	}
//	defer shards.Close()
//	f, err := fleet.New(fleet.Config{Members: shards.Members, Released: shards.Released})
//	if err != nil {
//		return err
//	}
//	return f.Run(ctx, "billing-reaper", reaper.RunConfig{})
//
// The tables are those of schema.sql, or others that are distributed alike. guard.sql has the
// function that the reaper's role must be allowed to execute. It needs Citus 11 or later, where
// every node has the metadata, and one copy of each shard.
//
// # Guarantees
//
// What [reaper.Reaper] promises holds for each shard. No move of a shard loses
// what was confirmed: each transaction of a member that may write first locks the metadata of
// its shards as Citus itself does, and fails with [ErrMoved] if one of them is not on the node
// any more. An apply needs no further round trip for that. Reads, as of
// [reaper.Reaper.DryRun], wait for no move.
//
// The gates are a fence over all shards where Citus writes the settings' reference table: change
// them through the coordinator, with [gates.Table.Set]. [fleet.Fleet.CloseGates] does not close
// them, and says so for each member.
//
// # Concurrency
//
// Shards are safe for concurrent use.
package citus
