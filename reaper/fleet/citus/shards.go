package citus

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// Config says which queue to reap and how its nodes are reached. Its zero value is the tables
// of [Schema].
type Config struct {
	// Reaper is the configuration of each member. Its names are those of the distributed
	// tables; a member has those of its shards. DeadLetter must be a [deadletter.Table],
	// co-located with the queue, or a [deadletter.InPlace]. Gates that are a [gates.Table]
	// must name a reference table; another source is the member's as it is.
	Reaper reaper.Config

	// Node changes the configuration of the pool of a node, before the pool is made. It is a
	// copy of the coordinator's with the host and the port that Citus has for the node, and
	// with citus.override_table_visibility off, without which Citus hides the shards in the
	// catalog. Change the host here if it is not reachable under that name, and the number
	// of connections: all loops of the node's shards share them, and each uses one at a time.
	// Default nil.
	Node func(*pgxpool.Config)
}

// Shards finds the shards of a queue, as members of a fleet. It is made by New, and may be
// used by any number of goroutines at once.
type Shards struct {
	coordinator *pgxpool.Pool
	cfg         Config
	tables      tables

	mu      sync.Mutex
	nodes   map[address]*node
	members map[shard]*member
}

// member is a shard whose member was given out.
type member struct {
	fleet.Member
	listed bool // the last list has it
}

// New makes Shards over the coordinator. It does no I/O. Its error holds every fault at once:
// [ErrNoCoordinator], [ErrMover], and those of [reaper.New].
func New(coordinator *pgxpool.Pool, cfg Config) (*Shards, error) {
	var faults []error
	if coordinator == nil {
		faults = append(faults, ErrNoCoordinator)
	} else {
		_, err := reaper.New(coordinator, cfg.Reaper)
		faults = append(faults, err)
	}
	found := tables{queue: orName(cfg.Reaper.Queue.Name, "job_queue")}
	switch mover := cfg.Reaper.DeadLetter.(type) {
	case nil:
		found.letters = pgx.Identifier{"job_dead_letter"}
	case deadletter.Table:
		found.letters = orName(mover.Name, "job_dead_letter")
	case deadletter.InPlace:
	default:
		faults = append(faults, ErrMover)
	}
	switch source := cfg.Reaper.Gates.(type) {
	case nil:
		found.settings = pgx.Identifier{"queue_config"}
	case gates.Table:
		found.settings = orName(source.Name, "queue_config")
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &Shards{
		coordinator: coordinator, cfg: cfg, tables: found,
		nodes: map[address]*node{}, members: map[shard]*member{},
	}, nil
}

// orName returns a name, or the one that stands for an empty one.
func orName(id pgx.Identifier, unset string) pgx.Identifier {
	if len(id) == 0 {
		return pgx.Identifier{unset}
	}
	return id
}

// Members returns a member for each shard of the queue that is on an active node: for
// [fleet.Config]. Its name is the shard's, such as job_queue_102008. A shard that has moved
// has another DB than before. A table that is not distributed as it must be is [ErrTable].
func (s *Shards) Members(ctx context.Context) ([]fleet.Member, error) {
	shards, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	members := make([]fleet.Member, len(shards))
	listed := make(map[shard]bool, len(shards))
	for i, found := range shards {
		m, err := s.member(ctx, found)
		if err != nil {
			return nil, err
		}
		members[i], listed[found] = m.Member, true
	}
	for found, m := range s.members {
		m.listed = listed[found]
	}
	return members, nil
}

// member returns the member of a shard, the same as before if there was one.
func (s *Shards) member(ctx context.Context, found shard) (*member, error) {
	if m := s.members[found]; m != nil {
		return m, nil
	}
	on := s.nodes[found.node]
	if on == nil {
		pool, err := s.connect(ctx, found.node)
		if err != nil {
			return nil, err
		}
		on = &node{pool: pool}
		s.nodes[found.node] = on
	}
	on.members++
	m := &member{Member: s.cfg.member(found, on.pool)}
	s.members[found] = m
	return m, nil
}

// member makes the member of a shard.
func (c Config) member(found shard, pool *pgxpool.Pool) fleet.Member {
	cfg, ids, name := c.Reaper, []int64{found.queueID}, found.queue.name
	cfg.Queue.Name = found.queue.identifier()
	if found.letters.name != "" {
		cfg.DeadLetter = deadletter.Table{Name: found.letters.identifier()}
		ids = append(ids, found.lettersID)
	}
	if found.settings.name != "" {
		cfg.Gates = gates.Replica{Name: found.settings.identifier()}
	}
	if found.queue.schema != "public" {
		name = found.queue.schema + "." + name
	}
	return fleet.Member{Name: name, DB: &pgtx.Guarded{Pool: pool, Queue: guard(ids)}, Config: cfg}
}

// Released is for [fleet.Config]: a member that is not listed any more is forgotten. The pool
// of a node is closed when its last member was. A member of another fleet is ignored.
func (s *Shards) Released(released fleet.Member) {
	if pool := s.forget(released); pool != nil {
		pool.Close()
	}
}

// forget forgets a member, and returns the pool that nobody uses any more.
func (s *Shards) forget(released fleet.Member) *pgxpool.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for found, m := range s.members {
		if m.DB != released.DB || m.listed {
			continue
		}
		delete(s.members, found)
		on := s.nodes[found.node]
		on.members--
		if on.members > 0 {
			return nil
		}
		delete(s.nodes, found.node)
		return on.pool
	}
	return nil
}

// Close closes the pools of all nodes. It waits for their connections, so call it after the
// last call of the fleet. The coordinator's pool is the caller's.
func (s *Shards) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, on := range s.nodes {
		on.pool.Close()
	}
	clear(s.nodes)
	clear(s.members)
}
