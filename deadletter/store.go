package deadletter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/internal/pgtext"
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

	// InPlace says that the queue's dead rows are the letters, as with the mover
	// [InPlace]; Table is then not used. A letter's id is its job's, its final error
	// the last one, and it has no actor; a redriven one is a letter no more. Default:
	// the letters are in Table.
	InPlace bool

	// MovedAt names the queue's column with the time of a move, for letters in place:
	// ages and the order go by it. It is of the type of the queue's other times; another
	// one is [ErrQueue]. A letter for which it is NULL has no age, and none that is asked
	// for. Without it a letter has the zero time, letters are in the order of their ids,
	// and a filter or a purge that asks for an age is [ErrFilter]. Default: none.
	MovedAt string

	// LockTimeout is how long a statement of [List], [Redrive] or [Purge] waits
	// for a lock that someone else holds: the row that a foreign key refers to, a
	// unique key of an open transaction, a table under DDL. It is the server's
	// lock_timeout, in whole milliseconds, rounded up. A letter whose job waits
	// longer is a [Failure] with the SQLSTATE 55P03, and the others are reaped. A
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

	requeued map[string]string // further columns that a redrive writes, and their values as SQL

	hasState, inPlace bool
	aged              bool // letters have ages

	lockTimeout lockTimeout
	spread      time.Duration
}

func (s Store) target(db DB) (target, error) {
	queue := s.Queue.orReference()
	n := queue.allNames()
	letters, err := s.letters(n)
	n.Add("dead_letter", letters)
	without := ""
	if !s.InPlace {
		without = strings.NewReplacer(n.Pairs...).Replace(withoutLetter)
	}
	n.Add("without_letter", without)
	timeout, negative := s.lockTimeout()
	return target{
		db: db, nested: pgtx.IsNested(db), names: n.Pairs, columns: queue.columns(),
		requeued: queue.mapping().Requeued(), hasState: queue.State != none, inPlace: s.InPlace,
		aged: !s.InPlace || s.MovedAt != "", lockTimeout: timeout, spread: s.Spread,
	}, errors.Join(checkDB(db), err, faults(n), queue.validate(s.InPlace), negative, checkAge("Spread", s.Spread))
}

// letters is the table of the letters, or a subquery in the form of one.
func (s Store) letters(n *pgtext.Names) (string, error) {
	if !s.InPlace {
		return s.Table.quoted()
	}
	movedAt := "'-infinity'::timestamptz"
	if s.MovedAt != "" {
		column := "q." + n.Column("moved_at", s.MovedAt)
		if s.Queue.TimesInUTC {
			column += " at time zone 'utc'"
		}
		movedAt = "coalesce(" + column + ", '-infinity')" // of the column's type, which is checked
	}
	finalError := "''"
	if last := s.Queue.orReference().LastError; last != "" {
		finalError = "q." + n.Column("final_error", last)
	}
	n.Add("moved", movedAt)
	n.Add("final", finalError)
	return strings.NewReplacer(n.Pairs...).Replace(sqlInPlace), nil
}

// checkAged reports ages that are asked for where letters have none.
func (t target) checkAged(ages ...time.Duration) error {
	if t.aged || !slices.ContainsFunc(ages, func(age time.Duration) bool { return age > 0 }) {
		return nil
	}
	return fmt.Errorf("%w: an age, and letters in place without MovedAt have none", ErrFilter)
}

// sqlInPlace has the dead rows of a queue in the form of letters.
const sqlInPlace = `(
  select q.{job_id} as dead_letter_id, q.{job_id} as job_id, {kind} as job_kind,
    q.{attempts} as attempts, {maximum} as max_attempts, {final} as final_error, ''::text as moved_by,
    {moved} as moved_at, null::timestamptz as redriven_at, null::text as redriven_by, to_json(q.*) as job
  from {queue} q
  where {is_dead}{only_dead}
)`

// sqlMovedAt shows the type of the letters' times. It reads no row.
const sqlMovedAt = `-- deadletter.moved_at
select d.moved_at
from {dead_letter} d
limit 0`

// queueCheckMovedAt queues the check of the column MovedAt, which would be taken for one
// in the session's zone if it were without a zone.
func (t target) queueCheckMovedAt(b *pgx.Batch) {
	if !t.inPlace || !t.aged {
		return
	}
	b.Queue(t.in(sqlMovedAt)).Query(func(rows pgx.Rows) error {
		rows.Close()
		if err := rows.Err(); err != nil {
			return err
		}
		if rows.FieldDescriptions()[0].DataTypeOID != pgtype.TimestamptzOID {
			return fmt.Errorf("%w: MovedAt is not a timestamptz, or with TimesInUTC a timestamp", ErrQueue)
		}
		return nil
	})
}

// in puts the names, and others as pairs of placeholder and SQL, into a
// statement. What it puts in is not searched again.
func (t target) in(sql string, others ...string) string {
	return strings.NewReplacer(append(others, t.names...)...).Replace(sql)
}

func (s Store) lockTimeout() (lockTimeout, error) {
	return lockTimeout(cmp.Or(s.LockTimeout, time.Second)), checkAge("LockTimeout", s.LockTimeout)
}
