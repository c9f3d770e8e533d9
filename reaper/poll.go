package reaper

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pollTimeout is how long a poll may take, and a write that is tried. Without a
// limit a half-open connection would block the loop until TCP gives up.
const pollTimeout = 15 * time.Second

// pollRow is the row of sqlPoll.
type pollRow struct {
	stale        bool
	dueMicros    *int64
	staleBefore  time.Time
	now          time.Time
	startedAt    time.Time
	uptimeMicros int64
	standby      bool
}

// poll reads what a loop needs to know, from a lease end on: in a transaction of
// its own, for the sake of its lock_timeout, and in one exchange.
func (r *Reaper) poll(ctx context.Context, from time.Time) (row pollRow, err error) {
	cursor := pgtype.Timestamptz{Time: from, Valid: !from.IsZero()}
	options := readCommitted
	options.AccessMode = pgx.ReadOnly
	err = r.exchange(ctx, options, "commit", func(batch *pgx.Batch) {
		batch.Queue(r.sql.poll, r.scope, cursor).QueryRow(func(found pgx.Row) error {
			return found.Scan(&row.stale, &row.dueMicros, &row.staleBefore, &row.now,
				&row.startedAt, &row.uptimeMicros, &row.standby)
		})
	})
	return row, err
}

// sqlLockTimeout bounds how long the statements of a transaction wait for a lock.
//
//	$1 milliseconds  text
const sqlLockTimeout = `select set_config('lock_timeout', $1, true)`

// exchange runs a batch in a transaction that ends with it. Where the DB is a pool
// or a connection that is one exchange; any other one begins a transaction in its
// own way, which is rolled back.
func (r *Reaper) exchange(ctx context.Context, options pgx.TxOptions, end string, queue func(*pgx.Batch)) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	batch := &pgx.Batch{}
	sender := r.batchSender()
	if sender == nil {
		tx, err := r.beginTx(ctx, options)
		if err != nil {
			return err
		}
		defer rollback(ctx, tx)
		batch.Queue(sqlLockTimeout, r.cfg.lockTimeoutMillis())
		queue(batch)
		return tx.SendBatch(ctx, batch).Close()
	}
	batch.BeginTx(options)
	batch.Queue(sqlLockTimeout, r.cfg.lockTimeoutMillis())
	queue(batch)
	batch.Queue(end)
	results := sender.SendBatch(ctx, batch)
	defer rollback(ctx, results.Tx()) // which gives the pool its connection back
	return results.Close()
}

// batchSender is a pool or a connection.
type batchSender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// batchSender returns the DB if it sends a batch as pgx does. A type that embeds a
// pool may begin in its own way.
func (r *Reaper) batchSender() batchSender {
	switch db := r.db.(type) {
	case *pgxpool.Pool:
		return db
	case *pgx.Conn:
		return db
	}
	return nil
}
