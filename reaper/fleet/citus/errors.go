package citus

import "errors"

var (
	// ErrMoved is wrapped by the error of an apply, a poll, a redrive or a purge through a
	// member whose shard is not on the member's node any more. Nothing was changed. The next
	// list of [Shards.Members] has the shard on its new node.
	ErrMoved = errors.New("citus: the shard has moved to another node")

	// ErrNoCoordinator is wrapped by New's error for a pool that is nil.
	ErrNoCoordinator = errors.New("citus: the coordinator's pool is nil")

	// ErrMover is wrapped by New's error for a mover other than [deadletter.Table] and
	// [deadletter.InPlace]: it may write to another node than the queue's shard is on.
	ErrMover = errors.New("citus: the mover is neither a deadletter.Table nor a deadletter.InPlace")

	// ErrTable is wrapped by the error of [Shards.Members] for a table that is not
	// distributed as it must be.
	ErrTable = errors.New("citus: the table is not distributed as a reaper needs it")
)
