package deadletter

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Store is a dead-letter table and the queue that its jobs came from, for those
// who look after the letters: [List], [Redrive], [Purge]. Its zero value is the
// reference schema's pair.
//
// Besides the columns that [Table] writes, the table has those that tell what
// became of a letter, and no moved_at that is NULL. The column job may be jsonb,
// json or text; json and text hold more, see [Redrive].
//
//	alter table dead_jobs
//	  add column redriven_at timestamptz,
//	  add column redriven_by text;
//
// Its job_id is of the type of the queue's key, with an index. Where letters
// pile up, another index keeps pages, redrives and purges from sorting them all:
//
//	create index concurrently on dead_jobs (moved_at, dead_letter_id);
type Store struct {
	Table Table
	Queue Queue

	// LockTimeout is how long a statement of [List], [Redrive] or [Purge] waits
	// for a lock that someone else holds: the row that a foreign key refers to, a
	// unique key of an open transaction, a table under DDL. It is the server's
	// lock_timeout, in whole milliseconds, rounded up. A letter whose job waits
	// longer is a [Failure] with the SQLSTATE 55P03, and the others are settled. A
	// table that is locked for longer, or a partition that the call may write to, is
	// the call's error, with the same SQLSTATE. Once a statement has waited for so
	// long, each further one of the transaction waits for a hundredth of it, so that
	// many locked rows are found soon. Too low, and jobs fail that would have had to
	// wait for a moment; too high, and the call holds its locks long. Default 0: 1 s.
	// A transaction of the caller's keeps its lock_timeout.
	LockTimeout time.Duration

	// Spread is the time over which [Redrive] spreads the jobs that it sends back, by
	// the database's clock, in whole microseconds. Of n jobs the i-th, from 0 in the
	// order of their oldest letters, is scheduled i/n of Spread after the start of the
	// transaction. Each call spreads its own jobs. Too low, and the jobs meet what they
	// depend on all at once; too high, and the last ones come late. Default 0: all at
	// once.
	Spread time.Duration
}

// target is a store with every name in it quoted, and its database.
type target struct {
	db     DB
	nested bool // db is a transaction of the caller's

	names   []string // placeholders and SQL
	columns []string // those of the queue, in the order of Queue.columns

	lockTimeout lockTimeout
	spread      time.Duration
}

func (s Store) target(db DB) (target, error) {
	queue := s.Queue.orReference()
	n := queue.allNames()
	letters, err := s.Table.quoted()
	n.Add("dead_letter", letters)
	timeout, negative := s.lockTimeout()
	return target{db, pgtx.IsNested(db), n.Pairs, queue.columns(), timeout, s.Spread},
		errors.Join(checkDB(db), err, faults(n), queue.distinct(), negative, checkAge("Spread", s.Spread))
}

// in puts the names, and others as pairs of placeholder and SQL, into a
// statement. What it puts in is not searched again.
func (t target) in(sql string, others ...string) string {
	return strings.NewReplacer(append(others, t.names...)...).Replace(sql)
}

func (s Store) lockTimeout() (lockTimeout, error) {
	return lockTimeout(cmp.Or(s.LockTimeout, time.Second)), checkAge("LockTimeout", s.LockTimeout)
}
