package deadletter

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// sqlLockTimeout bounds each wait of the transaction for a lock.
//
//	$1 milliseconds  text
const sqlLockTimeout = `-- deadletter.lock_timeout
select set_config('lock_timeout', $1::text, true)`

// lockTimeout is how long a statement waits for a lock.
type lockTimeout time.Duration

// again is the bound once a statement has waited for the whole of it.
func (t lockTimeout) again() lockTimeout { return t / 100 }

// String is the bound as the server takes it.
func (t lockTimeout) String() string { return pgtx.LockTimeoutMillis(time.Duration(t)) }

// queue queues what sets the bound.
func (t lockTimeout) queue(b *pgx.Batch) { b.Queue(sqlLockTimeout, t.String()) }

// sql is what sets the bound, as text.
func (t lockTimeout) sql() string { return "set local lock_timeout = " + t.String() }
