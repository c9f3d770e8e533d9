package pgtx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// cleanUpTimeout bounds a rollback. It runs also after the caller's context has ended.
const cleanUpTimeout = 5 * time.Second

// DB begins transactions.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// ReadCommitted overrides the database's default isolation level. At a stricter level
// concurrent reapers and workers would cause serialization failures, and a standby
// refuses serializable.
var ReadCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// IsNested reports whether db is the caller's transaction.
func IsNested(db DB) bool {
	_, nested := db.(pgx.Tx)
	return nested
}

// Begin begins a transaction. It applies options if db has BeginTx, as pools and
// connections do.
func Begin(ctx context.Context, db DB, options pgx.TxOptions) (pgx.Tx, error) {
	if db, ok := db.(interface {
		BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
	}); ok {
		return db.BeginTx(ctx, options)
	}
	return db.Begin(ctx)
}

// LockTimeoutMillis returns timeout as a value of PostgreSQL's lock_timeout: whole
// milliseconds, rounded up, at most the largest that PostgreSQL accepts. It is never 0,
// which would disable the timeout.
func LockTimeoutMillis(timeout time.Duration) string {
	millis := timeout.Milliseconds()
	if timeout%time.Millisecond > 0 {
		millis++
	}
	return strconv.FormatInt(min(max(millis, 1), math.MaxInt32), 10)
}

// Rollback rolls back a transaction, also when ctx has ended. After a commit it does
// nothing.
func Rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	_ = tx.Rollback(ctx) // a failed rollback closes the connection, and the server rolls back
}

// Tx is a transaction at read committed. Its BEGIN may be sent with its first batch, and
// its COMMIT with its last.
type Tx struct {
	pgx.Tx // nil until BEGIN was sent
	nested bool
	conn   *pgx.Conn // the transaction's own connection, or nil
	free   func()    // returns the connection to its pool
	over   bool

	setting func(*pgx.Batch) // queues the transaction's settings; nil: none, or queued already
	head    int              // how many statements of the first batch are BEGIN and settings
}

// HasConn reports whether a transaction on db has its own connection, so that BEGIN and
// COMMIT can be sent with other statements. A type that embeds a pool may have a Begin of
// its own, which must be called.
func HasConn(db DB) bool {
	switch db.(type) {
	case *pgxpool.Pool, *pgx.Conn:
		return true
	}
	return false
}

// Open makes a transaction. BEGIN is sent with the first batch if db is a pool or a
// connection, else now.
func Open(ctx context.Context, db DB) (*Tx, error) {
	switch db := db.(type) {
	case *pgx.Conn:
		return &Tx{conn: db}, nil
	case *pgxpool.Pool:
		conn, err := db.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &Tx{conn: conn.Conn(), free: conn.Release}, nil
	}
	return Start(ctx, db, ReadCommitted)
}

// Start begins a transaction in a round trip of its own.
func Start(ctx context.Context, db DB, options pgx.TxOptions) (*Tx, error) {
	tx, err := Begin(ctx, db, options)
	if err != nil {
		return nil, err
	}
	return &Tx{Tx: tx, nested: IsNested(db)}, nil
}

// Setting makes queue add settings to the first batch, after BEGIN. In the caller's
// transaction it does nothing: that keeps its settings.
func (t *Tx) Setting(queue func(*pgx.Batch)) {
	if !t.nested {
		t.setting = queue
	}
}

// Batch returns a new batch. The first one begins with BEGIN and the settings.
func (t *Tx) Batch() *pgx.Batch {
	batch := &pgx.Batch{}
	if t.Tx == nil {
		batch.BeginTx(ReadCommitted)
	}
	if t.setting != nil {
		t.setting(batch)
		t.setting, t.head = nil, batch.Len()
	}
	return batch
}

// Send sends a batch that Batch made. It does not send an empty batch.
//
// pgx prepares statements before it sends their batch, and the server locks the tables of
// a statement to prepare it. So that lock_timeout bounds this wait, BEGIN and the settings
// are sent first, unless the connection has prepared the other statements already.
func (t *Tx) Send(ctx context.Context, batch *pgx.Batch) error {
	head, queries := t.head, batch.QueuedQueries
	t.head = 0
	if head > 0 && t.known().lack(queries[head:]) {
		batch.QueuedQueries = queries[:head:head]
		if err := t.send(ctx, batch); err != nil {
			return err
		}
		queries = queries[head:]
		batch = &pgx.Batch{QueuedQueries: queries}
	}
	err := t.send(ctx, batch)
	t.known().keep(queries, err == nil)
	return err
}

func (t *Tx) send(ctx context.Context, batch *pgx.Batch) error {
	if batch.Len() == 0 {
		return nil
	}
	if t.Tx != nil {
		return t.Tx.SendBatch(ctx, batch).Close()
	}
	results := t.conn.SendBatch(ctx, batch)
	t.Tx = results.Tx()
	return results.Close()
}

// SendAndCommit sends a batch that ends with COMMIT. The server skips COMMIT when an
// earlier statement fails. The transaction must have its own connection, as in HasConn.
// atCommit reports whether the error is from the commit itself.
func (t *Tx) SendAndCommit(ctx context.Context, batch *pgx.Batch) (atCommit bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("%w: %w", errNotSent, err)
	}
	batch.Queue("commit").Query(func(rows pgx.Rows) error {
		atCommit = true
		rows.Close()
		return rows.Err()
	})
	err = t.Send(ctx, batch)
	t.over = err == nil
	return atCommit, err
}

// Commit commits the transaction, or releases the savepoint in the caller's. It returns
// an error and sends nothing if ctx has ended or the transaction is aborted.
func (t *Tx) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	if conn := t.Conn(); conn != nil && conn.PgConn().TxStatus() == 'E' {
		return errAborted
	}
	if t.nested {
		// pgx closes a savepoint whose release was interrupted, so that it could not
		// be rolled back. So the release does not stop when ctx ends.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
		defer cancel()
	}
	err := t.Tx.Commit(ctx)
	t.over = err == nil
	return err
}

// Committed reports whether the transaction was committed.
func (t *Tx) Committed() bool { return t.over }

// Close rolls back the transaction unless it was committed, and returns the connection to
// its pool. On a nil Tx it does nothing.
func (t *Tx) Close(ctx context.Context) {
	if t == nil {
		return
	}
	if t.Tx != nil && !t.over {
		Rollback(ctx, t.Tx)
	}
	if t.free != nil {
		t.free()
		t.free = nil
	}
}

// errNotSent is the error of a commit that was not sent, since its context had ended.
var errNotSent = errors.New("not sent")

// errAborted is the error of a commit in an aborted transaction.
var errAborted = errors.New("the transaction is aborted: an earlier error in it was ignored")
