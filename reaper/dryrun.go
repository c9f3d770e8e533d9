package reaper

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// DryRun shows what an Apply with the same limit would do now: how many leases
// are stale, and the oldest of them, at most limit, with what would become of
// each. It asks no gate. Of a large backlog the count takes most of the time; see
// [Config.CountUpTo].
//
// It cannot write: its transaction is read-only. It needs SELECT on the queue's
// columns but for scheduled_at and last_error, waits for no row lock, and runs on a hot standby. Everything is
// read in one snapshot, and times are the database's.
//
// A limit below 1 is [ErrLimit]. A lease's end that is no timestamptz is
// [ErrLeaseType]. The columns that only an apply writes are not read, so [Reaper.Verify]
// says more of a mapping.
func (r *Reaper) DryRun(ctx context.Context, limit int) (*DryRunResult, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	result, err := r.dryRun(ctx, limit)
	if pgtx.IsConflict(err) && !r.nested { // the table was altered under a prepared statement
		return r.dryRun(ctx, limit)
	}
	return result, err
}

// beginReadOnly begins a transaction that cannot write.
func (r *Reaper) beginReadOnly(ctx context.Context) (*pgtx.Tx, error) {
	options := pgtx.ReadCommitted
	options.AccessMode = pgx.ReadOnly
	tx, err := pgtx.Start(ctx, r.db, options)
	if err != nil {
		return nil, fmt.Errorf("reaper: begin: %w", err)
	}
	return tx, nil
}

func (r *Reaper) dryRun(ctx context.Context, limit int) (*DryRunResult, error) {
	tx, err := r.beginReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Close(ctx)
	tx.Setting(func(batch *pgx.Batch) { batch.Queue(sqlSettings, r.lockTimeout).Query(discard) })

	var rows []dryRunRow
	batch := tx.Batch()
	batch.Queue("set transaction read only") // a savepoint does not inherit it
	r.queueDryRun(batch, limit).Query(func(found pgx.Rows) error {
		defer found.Close()
		if err := r.cfg.Queue.checkLeaseType(found); err != nil {
			return err
		}
		return pgxscan.ScanAll(&rows, found)
	})
	if err := tx.Send(ctx, batch); err != nil {
		return nil, fmt.Errorf("reaper: read stale leases: %w", err)
	}
	return dryRunResult(rows, limit, r.cfg.CountUpTo), nil
}

// queueDryRun queues the statement, which counts one more than it should, to tell
// whether there are more.
func (r *Reaper) queueDryRun(batch *pgx.Batch, limit int) *pgx.QueuedQuery {
	if r.cfg.CountUpTo == 0 {
		return batch.Queue(r.sql.DryRun, r.scope, int64(limit))
	}
	return batch.Queue(r.sql.DryRunUpTo, r.scope, int64(limit), min(int64(r.cfg.CountUpTo), math.MaxInt64-1)+1)
}

// dryRunRow is a row of the dry run. Without stale leases there is one row and no
// job in it.
type dryRunRow struct {
	EvaluatedAt     time.Time
	StaleLeaseCount int
	MoveCount       int
	JobID           *string
	JobKind         *string
	LeaseOwner      *string
	LeaseUntil      pgtype.Timestamptz
	Attempts        *int
	MaxAttempts     *int
	OverdueSeconds  *int64
	Exhausted       *bool
}

func dryRunResult(rows []dryRunRow, limit, countUpTo int) *DryRunResult {
	result := &DryRunResult{
		EvaluatedAt:     rows[0].EvaluatedAt.UTC(),
		StaleLeaseCount: rows[0].StaleLeaseCount,
		MoveCount:       rows[0].MoveCount,
		Limit:           limit,
		Jobs:            make([]Job, 0, len(rows)),
	}
	if countUpTo > 0 && result.StaleLeaseCount > countUpTo {
		result.StaleLeaseCount, result.StaleLeaseCountCapped = countUpTo, true
	}
	for _, row := range rows {
		if row.JobID != nil {
			result.Jobs = append(result.Jobs, row.job())
		}
	}
	return result
}

func (row dryRunRow) job() Job {
	job := Job{
		JobID:          *row.JobID,
		LeaseOwner:     row.LeaseOwner,
		LeaseUntil:     fromServer(row.LeaseUntil),
		Attempts:       *row.Attempts,
		MaxAttempts:    *row.MaxAttempts,
		OverdueSeconds: *row.OverdueSeconds,
		WouldAction:    WouldReset,
	}
	if row.JobKind != nil {
		job.JobKind = *row.JobKind
	}
	if *row.Exhausted {
		job.WouldAction = WouldMove
	}
	return job
}
