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
	statement := &pgx.QueuedQuery{SQL: r.sql.poll, Arguments: []any{r.scope, cursor}}
	statement.QueryRow(func(found pgx.Row) error {
		return found.Scan(&row.stale, &row.dueMicros, &row.staleBefore, &row.now,
			&row.startedAt, &row.uptimeMicros, &row.standby)
	})
	err = r.exchange(ctx, options, "commit", statement)
	return row, err
}

// sqlLockTimeout bounds how long the statements of a transaction wait for a lock.
//
//	$1 milliseconds  text
const sqlLockTimeout = `select set_config('lock_timeout', $1, true)`

// exchange runs one statement in a transaction that it ends, in one exchange. No
// statement of it waits for a lock for longer than LockTimeout.
//
// pgx prepares a statement before it sends a batch, and to prepare it the server
// waits for a lock on the table, before it was told how long. So where a connection
// has not prepared the statement, and where there is only a DB that begins in its
// own way, the exchange is made in steps.
func (r *Reaper) exchange(ctx context.Context, options pgx.TxOptions, end string, statement *pgx.QueuedQuery) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	conn, release, err := r.ownConn(ctx)
	if err != nil {
		return err
	}
	defer release()
	if conn == nil {
		tx, err := r.beginTx(ctx, options)
		if err != nil {
			return err
		}
		return r.stepwise(ctx, tx, statement)
	}
	prepared := conn.PgConn().CustomData()
	if prepared[statement.SQL] != nil {
		delete(prepared, statement.SQL) // pgx forgets it after an error
		err = r.atOnce(ctx, conn, options, end, statement)
	} else {
		var tx pgx.Tx
		if tx, err = conn.BeginTx(ctx, options); err == nil {
			err = r.stepwise(ctx, tx, statement)
		}
	}
	if err == nil {
		prepared[statement.SQL] = true
	}
	return err
}

// atOnce runs a transaction in one exchange.
func (r *Reaper) atOnce(ctx context.Context, conn *pgx.Conn, options pgx.TxOptions, end string, statement *pgx.QueuedQuery) error {
	batch := &pgx.Batch{}
	batch.BeginTx(options)
	batch.Queue(sqlLockTimeout, r.cfg.lockTimeoutMillis())
	batch.QueuedQueries = append(batch.QueuedQueries, statement)
	batch.Queue(end)
	results := conn.SendBatch(ctx, batch)
	defer rollback(ctx, results.Tx())
	return results.Close()
}

// stepwise sets the lock timeout, runs the statement and rolls back.
func (r *Reaper) stepwise(ctx context.Context, tx pgx.Tx, statement *pgx.QueuedQuery) error {
	defer rollback(ctx, tx)
	if _, err := tx.Exec(ctx, sqlLockTimeout, r.cfg.lockTimeoutMillis()); err != nil {
		return err
	}
	return tx.SendBatch(ctx, &pgx.Batch{QueuedQueries: []*pgx.QueuedQuery{statement}}).Close()
}

// ownConn returns a connection and what gives it back, or none if the DB is neither
// a pool nor a connection. A type that embeds a pool may begin in its own way.
func (r *Reaper) ownConn(ctx context.Context) (*pgx.Conn, func(), error) {
	switch db := r.db.(type) {
	case *pgx.Conn:
		return db, func() {}, nil
	case *pgxpool.Pool:
		conn, err := db.Acquire(ctx)
		if err != nil {
			return nil, nil, err
		}
		return conn.Conn(), conn.Release, nil
	}
	return nil, func() {}, nil
}
