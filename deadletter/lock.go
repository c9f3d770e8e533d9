package deadletter

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sqlLockTimeout bounds each wait of the transaction for a lock.
//
//	$1 milliseconds  text
const sqlLockTimeout = `-- deadletter.lock_timeout
select set_config('lock_timeout', $1::text, true)`

// lockNotAvailable is the SQLSTATE of a wait that lock_timeout ended.
const lockNotAvailable = "55P03"

// lockTimeout is how long a statement waits for a lock.
type lockTimeout time.Duration

// again is the bound once a statement has waited for the whole of it.
func (t lockTimeout) again() lockTimeout { return t / 100 }

// String is the bound as the server takes it. 0 would be none at all.
func (t lockTimeout) String() string {
	ms := math.Ceil(float64(t) / float64(time.Millisecond))
	return strconv.FormatInt(int64(min(max(ms, 1), math.MaxInt32)), 10)
}

// queue queues what sets the bound.
func (t lockTimeout) queue(b *pgx.Batch) { b.Queue(sqlLockTimeout, t.String()) }

// set sets the bound.
func (t lockTimeout) set(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, sqlLockTimeout, t.String())
	return err
}

func isLockTimeout(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == lockNotAvailable
}
