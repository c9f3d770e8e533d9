package reaper

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
)

// claimed is a job that the transaction has locked, what is due to it, and in
// the end what became of it.
type claimed struct {
	id, kind, owner string
	leaseUntil      int64 // microseconds, as time.UnixMicro takes and NegInfinity has them

	bumped   int   // the attempts, bumped
	spent    bool  // it moves, instead of being reset
	delaySec int64 // of a reset

	receipt *deadletter.Receipt // of a move
	failure *Failure            // not nil: it is as it was
}

// claim locks the oldest stale leases of a stretch, at most limit, and decides
// what is due to each.
func (r *Reaper) claim(ctx context.Context, tx pgx.Tx, o order, baseSec int64) (*harvest, error) {
	h := &harvest{}
	batch := &pgx.Batch{}
	r.queueClaim(batch, o, h)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, claimError(o, err)
	}
	return h, r.decideAll(h, baseSec)
}

// Settings of a transaction, for what reads the oldest leases. Where statistics
// know of few of them, the server would sort them all, to find the oldest of a
// million; a sort that is forbidden leaves the index, which is read no further
// than the batch. And where they know of very many, the server would compile the
// statement each time, which takes longer than to run it. A caller's transaction
// keeps the caller's settings.
const (
	sqlNoCompiling = "set local jit = off"
	sqlNoSort      = "set local enable_sort = off"
	sqlSort        = "set local enable_sort to default"
)

// sqlCrowded tries to take the advisory lock of the drain that goes through the
// oldest leases, and reads whether another one has it. The lock guards nothing,
// is never waited for, and ends with the transaction. Its class is "LEAS" in
// ASCII, its object the queue's oid.
//
//	$1 queue  text, its quoted name
const sqlCrowded = `-- reaper.crowded
select not pg_try_advisory_xact_lock(1279607123, $1::text::regclass::oid::integer)`

// queueClaim queues the claim's statement, whose rows are read into h, and before
// it the question whether other drains are at work, if the order asks that.
func (r *Reaper) queueClaim(batch *pgx.Batch, o order, h *harvest) {
	if o.plan != nil {
		r.queuePlan(batch, o.plan, h)
		return
	}
	r.queueSettings(batch)
	if o.asks {
		batch.Queue(sqlCrowded, r.queue.Table).QueryRow(func(row pgx.Row) error { return row.Scan(&h.crowded) })
	}
	sql, arguments := r.sql.claim, []any{r.scope, int64(o.limit), o.behind.leaseUntil, o.behind.id, o.upTo}
	if o.exclude != "" {
		sql, arguments = r.sql.claimOthers, append(arguments, o.exclude)
	}
	batch.Queue(sql, arguments...).Query(h.read)
	r.queueOwn(batch, sqlSort)
}

// queueSettings queues the settings for what reads the oldest leases.
func (r *Reaper) queueSettings(batch *pgx.Batch) {
	r.queueOwn(batch, sqlNoCompiling)
	r.queueOwn(batch, sqlNoSort)
}

// queueOwn queues a setting of a transaction of the reaper's own.
func (r *Reaper) queueOwn(batch *pgx.Batch, sql string) {
	if !r.nested {
		batch.Queue(sql)
	}
}

// decideAll decides what is due to each job.
func (r *Reaper) decideAll(h *harvest, baseSec int64) error {
	err := guarded("reaper: backoff policy", func() error {
		for _, job := range h.jobs {
			if !job.spent {
				job.delaySec = backoff.Clamp(r.cfg.Backoff.DelaySec(job.bumped, baseSec))
			}
		}
		return nil
	})
	markTwins(h.jobs)
	return err
}

// markTwins leaves alone what has an id in common: a table without a key may hold
// such jobs, and a write by id would give one the other's due.
func markTwins(jobs []*claimed) {
	if !mayHoldTwins(jobs) {
		return
	}
	byID := make(map[string]*claimed, len(jobs))
	for _, job := range jobs {
		twin, ok := byID[job.id]
		if !ok {
			byID[job.id] = job
			continue
		}
		job.failure = &Failure{JobID: job.id, Error: "another job has the same id"}
		twin.failure = job.failure
	}
}

// mayHoldTwins reports whether two ids have the same hash, as two equal ones have.
func mayHoldTwins(jobs []*claimed) bool {
	seed, hashes := maphash.MakeSeed(), make([]uint64, len(jobs))
	for i, job := range jobs {
		hashes[i] = maphash.String(seed, job.id)
	}
	slices.Sort(hashes)
	return len(slices.Compact(hashes)) < len(jobs)
}

// place is where a later claim begins to find what is behind this job.
func (job *claimed) place() place {
	return place{toServer(time.UnixMicro(job.leaseUntil)), &job.id}
}
