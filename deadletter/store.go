package deadletter

import (
	"errors"
	"fmt"
	"strings"
)

// Store is a dead-letter table and the queue that its jobs came from, for those
// who look after the letters: [List], [Redrive], [Purge]. Its zero value is the
// reference schema's pair. The names of a mapped queue come from the method
// Quoted of the reaper's Table.
//
// Beside the columns that [Table] writes, the table has those that tell what
// became of a letter, and no moved_at that is NULL:
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
}

// tables is a store with every name in it.
type tables struct {
	letters string
	queue   Queue
}

func (s Store) tables() (tables, error) {
	letters, err := s.Table.quoted()
	queue, lacking := s.Queue.resolve()
	return tables{letters, queue}, errors.Join(err, lacking)
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
