package reaper

import (
	"context"
	"fmt"
	"time"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
)

// claimed is a job that the transaction has locked, what is due to it, and in
// the end what became of it.
type claimed struct {
	claimRow
	bumped  int  // the attempts, bumped
	spent   bool // it moves, instead of being reset
	receipt deadletter.Receipt

	delaySec    int64     // of a reset
	scheduledAt time.Time // of a reset

	failure *Failure // not nil: it is as it was
}

// claimRow is a row of sqlClaim.
type claimRow struct {
	Now         time.Time
	ID          string
	Kind        *string
	Owner       *string
	LeaseUntil  pgtype.Timestamptz
	Attempts    int
	MaxAttempts int

	MostAttempts int // what the column can hold
}

// place is where a claim begins in the order of leases. Its zero value is before
// every lease.
type place struct {
	leaseUntil pgtype.Timestamptz
	id         *string // nil: behind every job of that lease end
}

// claim locks the oldest stale leases behind a place, at most limit, and decides
// what is due to each.
func (r *Reaper) claim(ctx context.Context, tx pgx.Tx, o order, baseSec int64) ([]*claimed, error) {
	var rows []claimRow
	batch := &pgx.Batch{}
	r.queueClaim(batch, o, &rows)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("reaper: claim stale leases: %w", err)
	}
	return r.decideAll(rows, baseSec)
}

// queueClaim queues the claim's statement, whose rows are read into rows.
func (r *Reaper) queueClaim(batch *pgx.Batch, o order, rows *[]claimRow) {
	batch.Queue(r.sql.claim, r.grace(), int64(o.limit), o.behind.leaseUntil, o.behind.id).
		Query(func(found pgx.Rows) error { return scanLeases(rows, found) })
}

// decideAll decides what is due to each job.
func (r *Reaper) decideAll(rows []claimRow, baseSec int64) ([]*claimed, error) {
	jobs := make([]*claimed, len(rows))
	err := guarded("reaper: backoff policy", func() error {
		for i, row := range rows {
			jobs[i] = r.decide(row, baseSec)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	markTwins(jobs)
	return jobs, nil
}

// markTwins leaves alone what has an id in common: a table without a key may hold
// such jobs, and a write by id would give one the other's due.
func markTwins(jobs []*claimed) {
	byID := make(map[string]*claimed, len(jobs))
	for _, job := range jobs {
		twin, ok := byID[job.ID]
		if !ok {
			byID[job.ID] = job
			continue
		}
		job.failure = &Failure{JobID: job.ID, Error: "another job has the same id"}
		twin.failure = job.failure
	}
}

func (r *Reaper) decide(row claimRow, baseSec int64) *claimed {
	job := &claimed{
		claimRow: row,
		bumped:   bump(row),
		spent:    spent(row.Attempts, row.MaxAttempts),
	}
	if !job.spent {
		job.delaySec = backoff.Clamp(r.cfg.Backoff.DelaySec(job.bumped, baseSec))
		job.scheduledAt = addSeconds(row.Now, job.delaySec)
	}
	return job
}

// place is where a later claim begins to find what is behind this job.
func (job *claimed) place() place { return place{job.LeaseUntil, &job.ID} }

// scanLeases scans rows with a lease's end. A timestamp without a zone would be
// taken for one in the session's zone, and live leases for stale ones.
func scanLeases[T any](rows *[]T, found pgx.Rows) error {
	defer found.Close()
	if err := found.Err(); err != nil { // such rows have no fields to ask for
		return err
	}
	for _, field := range found.FieldDescriptions() {
		if field.Name == "lease_until" && field.DataTypeOID != pgtype.TimestamptzOID {
			return ErrLeaseType
		}
	}
	return pgxscan.ScanAll(rows, found)
}

// spent reports whether one more failed try uses the tries up. The sum that
// would say it plainly overflows at the integer's edge.
func spent(attempts, maxAttempts int) bool {
	return attempts >= maxAttempts || attempts+1 >= maxAttempts
}

// bump counts the failed try. At the edge of their column's type attempts stand
// still: it can hold no more, and such a job goes to the dead letters if it has a
// maximum at all.
func bump(row claimRow) int {
	if row.Attempts >= row.MostAttempts {
		return row.Attempts
	}
	return row.Attempts + 1
}

// addSeconds adds more seconds than a Duration can hold.
func addSeconds(t time.Time, sec int64) time.Time {
	return time.Unix(t.Unix()+sec, int64(t.Nanosecond())).UTC()
}
