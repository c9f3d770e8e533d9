package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// PurgeConfig says how to purge. Its zero value removes redriven letters alone.
type PurgeConfig struct {
	// Batch is how many letters one transaction removes. Too few, and a purge takes
	// long; too many, and it holds its locks long. Default 0: 1000.
	Batch int

	// Unredriven also removes letters that were never redriven, and with a job's
	// last one the job: its queue row, if that is in the state of dead letters.
	// Nothing can bring such a job back. Default false.
	Unredriven bool

	// Filter says which of the letters that are old enough are removed. With
	// StatusUnredriven, which needs Unredriven, the redriven ones stay. Its zero value
	// lets all through.
	Filter Filter
}

func (c PurgeConfig) validate() error {
	faults := []error{c.Filter.validate()}
	if c.Batch < 0 {
		faults = append(faults, fmt.Errorf("%w: Batch %d", ErrNegative, c.Batch))
	}
	if c.Filter.Status == StatusUnredriven && !c.Unredriven {
		faults = append(faults, fmt.Errorf("%w: unredriven letters are removed only with Unredriven", ErrFilter))
	}
	return errors.Join(faults...)
}

// maxPurgeFailures is how many failures the result of a purge lists.
const maxPurgeFailures = 100

// Purge removes letters that were moved, and if they were redriven that too,
// longer ago than olderThan, by the database's clock. It removes them batch by
// batch, each in a transaction of its own, oldest first: the redriven ones, and
// then the others, if cfg asks for that. A queue row in the state of dead letters
// goes with the last unredriven letter of its job, so that the two never disagree;
// any other queue row is left alone.
//
// It goes through the letters once. What someone else has locked is left to the
// next call. So is a letter that PostgreSQL does not let go, because a row of yours
// refers to it, say, or because that check waits longer than Store.LockTimeout;
// those are in Failures.
//
// The role needs SELECT on the letters' dead_letter_id, job_id, moved_at,
// redriven_at and what the filter asks for, DELETE on the letters, and UPDATE on
// their redriven_at, to lock them. With Unredriven it also needs SELECT on the
// queue's key and state, UPDATE on its state, and DELETE on the queue.
//
// On an error the result holds what was committed before it, unlike elsewhere.
// Returns [ErrNegative], [ErrFilter] or [ErrQueue] for an invalid argument, [ErrID]
// for an id that is not of the key's type, [ErrReadOnly] on a standby, else a
// [pgconn.PgError]. [ErrOutcomeUnknown] is about the last batch alone. When ctx
// ends, the batch under way is rolled back. With a pgx.Tx as DB each batch is a
// savepoint in it.
func Purge(ctx context.Context, db DB, store Store, olderThan time.Duration, cfg PurgeConfig) (*PurgeResult, error) {
	result := &PurgeResult{}
	t, err := store.target(db)
	if err := errors.Join(err, checkAge("olderThan", olderThan), cfg.validate(),
		t.checkAged(olderThan, cfg.Filter.OlderThan, cfg.Filter.YoungerThan)); err != nil {
		return result, err
	}
	if cfg.Batch == 0 {
		cfg.Batch = 1000
	}
	p := &purge{target: t, age: olderThan, filter: cfg.Filter, limit: cfg.Batch, result: result}
	if cfg.Filter.Status != StatusUnredriven && !t.inPlace {
		err = p.drain(ctx, false)
	}
	if err == nil && cfg.Unredriven && cfg.Filter.Status != StatusRedriven {
		err = p.drain(ctx, true)
	}
	return result, err
}

// purge is one call.
type purge struct {
	target
	age    time.Duration
	filter Filter
	limit  int
	result *PurgeResult
}

// drain removes batch after batch of redriven letters, or of the others.
func (p *purge) drain(ctx context.Context, unredriven bool) error {
	var after cursor
	for {
		var batch purgeBatch
		err := p.transact(ctx, func(tx pgx.Tx) error {
			batch = purgeBatch{purge: p, tx: tx, unredriven: unredriven}
			if err := batch.find(ctx, after); err != nil {
				return p.filter.wrap("purge", err)
			}
			return wrap("purge", batch.remove(ctx))
		})
		if err != nil {
			return err
		}
		batch.report()
		if after = nextCursor(batch.found, p.limit); after == "" {
			return nil
		}
	}
}

// purgeBatch is one transaction of a purge.
type purgeBatch struct {
	*purge
	tx         pgx.Tx
	unredriven bool

	found []letterKey
	jobs  []*deadJob
}

func (b *purgeBatch) find(ctx context.Context, after cursor) error {
	w := &where{args: []any{int64(b.limit), b.age.Microseconds()}, inPlace: b.inPlace}
	if b.unredriven {
		w.and("d.redriven_at is null")
	} else { // their age counts from the redrive too
		w.and("d.redriven_at < now() - $2::bigint * interval '1 microsecond'")
	}
	if b.age > 0 {
		w.andAged()
	}
	after.conditions(w)
	b.filter.conditions(w)
	batch := &pgx.Batch{}
	b.queueFind(batch, &b.found, sqlPurge, w)
	err := b.tx.SendBatch(ctx, batch).Close()
	b.jobs = groupByJob(b.found)
	return err
}

// errSeveralRows is why a purge leaves a job that is its own letter.
var errSeveralRows = errors.New("several dead jobs have this id")

// remove removes the letters that were found, but those of jobs whose queue rows
// someone else has locked.
func (b *purgeBatch) remove(ctx context.Context) error {
	if b.unredriven && len(b.jobs) > 0 {
		batch := &pgx.Batch{}
		b.queueLockRows(batch, b.jobs, "{dead_state}")
		if err := b.tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
	}
	b.jobs = slices.DeleteFunc(b.jobs, func(job *deadJob) bool { return job.locked != job.dead })
	removable := make([]*deadJob, 0, len(b.jobs))
	for _, job := range b.jobs {
		if b.inPlace && job.dead > 1 { // only one of them may be old enough
			job.fail(errSeveralRows)
		} else {
			removable = append(removable, job)
		}
	}
	return b.write(ctx, b.tx, removable, b.queueRemove)
}

// queueRemove queues what removes the letters of jobs, and returns for which of
// them the server left something.
func (b *purgeBatch) queueRemove(batch *pgx.Batch, jobs []*deadJob) (missing func(*deadJob) bool) {
	var letters []string
	for _, job := range jobs {
		job.removed = 0
		letters = append(letters, job.found...)
	}
	removed, left := map[string]bool{}, map[string]bool{}
	if !b.inPlace {
		queueCollect(batch, removed, b.in(sqlPurgeLetters), array(letters), b.unredriven)
	}
	if b.unredriven {
		var n int
		keys := keysOf(jobs)
		queueEach(batch, func() { jobs[n-1].removed++ }, []any{&n}, b.in(sqlPurgeJobs), keys, keys)
		queueEach(batch, func() { left[jobs[n-1].id] = true }, []any{&n}, b.in(sqlPurgeLeft), keys, keys)
	}
	return func(job *deadJob) bool { return left[job.id] || !b.inPlace && !containsAll(removed, job.found) }
}

// report adds what was committed to the result.
func (b *purgeBatch) report() {
	letters := 0
	for _, job := range b.jobs {
		if job.failure == nil {
			letters += len(job.found)
			b.result.JobCount += job.removed
			continue
		}
		b.result.FailedCount += len(job.found)
		if len(b.result.Failures) < maxPurgeFailures {
			b.result.Failures = append(b.result.Failures, *job.failure)
		}
	}
	if b.unredriven {
		b.result.UnredrivenCount += letters
	} else {
		b.result.RedrivenCount += letters
	}
	if letters > 0 {
		b.result.Batches++
	}
}
