package deadletter

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Store is a dead-letter table and the queue that its jobs came from, for those
// who look after the letters: [List], [Redrive], [Purge]. Its zero value is the
// reference schema's pair. The names of a mapped queue come from the method
// Quoted of the reaper's Table.
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
	// table that is locked for longer is the call's error, with the same SQLSTATE.
	// Once a statement of a transaction has waited for so long, each further one
	// of that transaction waits for a hundredth of it, so that many locked rows
	// are found soon. Too low, and jobs fail that would have had to wait for a
	// moment; too high, and the locks that the call holds are held for as long.
	// Default 0: 1 s. A transaction of the caller's keeps the lock_timeout that
	// it has.
	LockTimeout time.Duration

	// Spread is the time over which [Redrive] spreads the jobs that it sends
	// back, by the database's clock, in whole microseconds. Of n jobs the i-th,
	// counted from 0 in the order of their oldest letters, is scheduled i/n of
	// Spread after the start of the transaction: the first one at once, and all of
	// them before Spread has passed. Each call spreads its own jobs. Too low, and
	// the jobs meet what they depend on all at once; too high, and the last ones
	// come late. Default 0: all at once.
	Spread time.Duration
}

// tables is a store with every name in it.
type tables struct {
	letters string
	queue   Queue

	lockTimeout lockTimeout
	spread      time.Duration
}

func (s Store) tables() (tables, error) {
	letters, err := s.Table.quoted()
	queue, lacking := s.Queue.resolve()
	timeout, negative := s.lockTimeout()
	return tables{letters, queue, timeout, s.Spread}, errors.Join(err, lacking, negative, checkAge("Spread", s.Spread))
}

func (s Store) lockTimeout() (lockTimeout, error) {
	if s.LockTimeout == 0 {
		return lockTimeout(time.Second), nil
	}
	return lockTimeout(s.LockTimeout), checkAge("LockTimeout", s.LockTimeout)
}

// resolve returns the reference schema's names for a zero queue, and an error
// for one that lacks some.
func (q Queue) resolve() (Queue, error) {
	if q == (Queue{}) {
		return referenceQueue, nil
	}
	var faults []error
	for _, n := range []struct{ what, sql string }{
		{"Table", q.Table}, {"JobID", q.JobID}, {"Attempts", q.Attempts}, {"MaxAttempts", q.MaxAttempts},
		{"State", q.State}, {"ScheduledAt", q.ScheduledAt}, {"LeaseOwner", q.LeaseOwner}, {"LeaseUntil", q.LeaseUntil},
		{"RetryWaiting", q.RetryWaiting}, {"DeadLetter", q.DeadLetter},
	} {
		if strings.TrimSpace(n.sql) == "" {
			faults = append(faults, fmt.Errorf("%w: %s", ErrQueue, n.what))
		}
	}
	return q, errors.Join(faults...)
}

var referenceQueue = Queue{
	Table: `job_queue`, JobID: `job_id`, JobKind: `job_kind`, Attempts: `attempts`, MaxAttempts: `max_attempts`,
	State: `state`, ScheduledAt: `scheduled_at`, LeaseOwner: `lease_owner`, LeaseUntil: `lease_until`,
	LastError: `last_error`,
	Leased:    `'leased'`, RetryWaiting: `'retry_waiting'`, DeadLetter: `'dead_letter'`,
}

// in puts the names, and others as pairs of placeholder and SQL, into a
// statement.
func (t tables) in(sql string, others ...string) string {
	clearError := ""
	if t.queue.LastError != "" {
		clearError = ",\n  " + t.queue.LastError + " = null"
	}
	return t.queue.in(sql, append(others,
		"{dead_letter}", t.letters,
		"{state}", t.queue.State,
		"{scheduled_at}", t.queue.ScheduledAt,
		"{lease_owner}", t.queue.LeaseOwner,
		"{lease_until}", t.queue.LeaseUntil,
		"{clear_error}", clearError,
		"{retry_waiting}", t.queue.RetryWaiting,
		"{dead}", t.queue.DeadLetter,
	)...)
}
