package reaper

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/internal/loop"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// pollTimeout is how long a poll may take, and a write that is tried. Without a
// limit a half-open connection would block the loop until TCP gives up.
const pollTimeout = 15 * time.Second

// pollRow is the row of the poll.
type pollRow struct {
	stale        bool
	dueMicros    *int64
	staleBefore  time.Time
	now          time.Time
	startedAt    time.Time
	uptimeMicros int64
	standby      bool
}

func (row pollRow) result(elapsed time.Duration) loop.PollResult {
	result := loop.PollResult{
		Stale:   row.stale,
		Server:  loop.Server{Started: row.startedAt, Standby: row.standby},
		Uptime:  micros(row.uptimeMicros),
		Elapsed: elapsed,
	}
	if row.dueMicros != nil {
		due := micros(*row.dueMicros)
		result.NextExpiry = &due
	}
	return result
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// poll reads what a loop needs to know, from a lease end on: in a transaction of
// its own, for the sake of its lock_timeout, and in one exchange.
func (r *Reaper) poll(ctx context.Context, from time.Time) (row pollRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	tx, err := r.openTimed(ctx)
	if err != nil {
		return row, err
	}
	defer tx.Close(ctx)
	cursor := pgtype.Timestamptz{Time: from, Valid: !from.IsZero()}
	batch := tx.Batch()
	batch.Queue(r.sql.Poll, r.scope, cursor).QueryRow(func(found pgx.Row) error {
		return found.Scan(&row.stale, &row.dueMicros, &row.staleBefore, &row.now,
			&row.startedAt, &row.uptimeMicros, &row.standby)
	})
	if pgtx.HasConn(r.db) {
		_, err = tx.SendAndCommit(ctx, batch)
	} else {
		err = tx.Send(ctx, batch)
	}
	return row, err
}

// openTimed makes a transaction whose statements wait for a lock for LockTimeout at
// most.
func (r *Reaper) openTimed(ctx context.Context) (*pgtx.Tx, error) {
	tx, err := pgtx.Open(ctx, r.db)
	if err != nil {
		return nil, err
	}
	tx.Setting(r.queueLockTimeout)
	return tx, nil
}

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
	batch.Queue(r.sql.TryWrite)
	if err := tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("reaper: try to write: %w", wrapReadOnly(err))
	}
	return nil
}
