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

// cleanUpTimeout bounds a rollback, which must happen also when the caller's
// context has ended.
const cleanUpTimeout = 5 * time.Second

// DB begins transactions.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// ReadCommitted is asked for, whatever the database's default is: a stricter level
// would fail where another reaper or a worker was faster, and a standby refuses
// serializable.
var ReadCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// IsNested reports whether db is a transaction of the caller's.
func IsNested(db DB) bool {
	_, nested := db.(pgx.Tx)
	return nested
}

// Begin begins a transaction with options where db can be asked for them, which
// pools and connections can.
func Begin(ctx context.Context, db DB, options pgx.TxOptions) (pgx.Tx, error) {
	if db, ok := db.(interface {
		BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
	}); ok {
		return db.BeginTx(ctx, options)
	}
	return db.Begin(ctx)
}

// LockTimeoutMillis is a wait as the value of PostgreSQL's lock_timeout: whole
// milliseconds, rounded up, and no more than it takes. It is never 0, which would be no
// bound at all.
func LockTimeoutMillis(timeout time.Duration) string {
	millis := timeout.Milliseconds()
	if timeout%time.Millisecond > 0 {
		millis++
	}
	return strconv.FormatInt(min(max(millis, 1), math.MaxInt32), 10)
}

// Rollback ends a transaction that was not committed, also when ctx has ended.
// It is harmless after a commit.
func Rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	_ = tx.Rollback(ctx) // a failed rollback closes the connection, and the server rolls back
}

// Tx is a transaction at read committed. Its BEGIN may travel with its first
// batch, and its COMMIT with its last one.
type Tx struct {
	pgx.Tx // nil until BEGIN was sent
	nested bool
	conn   *pgx.Conn // not nil: the transaction has this connection for itself
	free   func()    // gives the connection back to its pool
	over   bool

	setting func(*pgx.Batch) // queues the transaction's settings; nil: queued already
	head    int              // how many statements of the first batch are BEGIN and settings
}

// HasConn reports whether a transaction on db has a connection for itself, so that
// its BEGIN and COMMIT can travel with other statements. A type that embeds a pool
// may begin in a way of its own.
func HasConn(db DB) bool {
	switch db.(type) {
	case *pgxpool.Pool, *pgx.Conn:
		return true
	}
	return false
}

// Open makes a transaction. Its BEGIN travels with the first batch where that can
// be; elsewhere it is sent now.
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

// Start begins a transaction in an exchange of its own.
func Start(ctx context.Context, db DB, options pgx.TxOptions) (*Tx, error) {
	tx, err := Begin(ctx, db, options)
	if err != nil {
		return nil, err
	}
	return &Tx{Tx: tx, nested: IsNested(db)}, nil
}

// Setting has queue put the transaction's settings into the first batch, after BEGIN.
// A caller's transaction keeps the caller's.
func (t *Tx) Setting(queue func(*pgx.Batch)) {
	if !t.nested {
		t.setting = queue
	}
}

// Batch returns an empty batch, or the first one with BEGIN and the settings in it.
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

// Send sends a batch that Batch made. An empty one costs nothing.
//
// pgx prepares statements before it sends their batch, and to prepare one the server
// waits for a lock on its tables. So BEGIN and the settings, lock_timeout among them,
// are sent before by themselves, unless the connection has prepared the others already.
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

// SendAndCommit sends a batch with COMMIT after it, which the server does not
// reach when a statement before it fails. Only a transaction that has a connection
// for itself can. atCommit says that the error came from the commit itself.
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

// Commit ends the transaction, or the savepoint in the caller's, unless that could
// only fail.
func (t *Tx) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	if conn := t.Conn(); conn != nil && conn.PgConn().TxStatus() == 'E' {
		return errAborted
	}
	if t.nested {
		// A savepoint whose release was interrupted is closed for pgx and would
		// not be rolled back to, so no end of ctx stops the release.
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

// Close rolls back what was not committed, and gives the connection back. A nil Tx
// has nothing to close.
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

// errNotSent is the error of a commit whose context had ended before.
var errNotSent = errors.New("not sent")

// errAborted is the error of a commit in a transaction that an error has aborted.
var errAborted = errors.New("the transaction is aborted: code that was called in it ignored an error")
