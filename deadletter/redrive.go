package deadletter

import (
	"context"
	"errors"
	"fmt"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Redrive sends jobs back to the queue, in one transaction: those of the oldest
// unredriven letters that a filter lets through, at most limit. A job then waits
// for a worker like one whose retry may run now, or later with Store.Spread: with
// all its tries, no lease and no last error. Its letters stay and are marked, with
// when and by whom. As its attempts begin at 0 again, the owner of a lease must be
// new for each claim: else a worker that lost the job before cannot be told from
// one that claims it now.
//
// A job that has several unredriven letters is redriven once, and all of them are
// marked. A queue row that is gone is rebuilt from the job's newest letter, columns
// of the user's own included. A column that was added since gets its default.
//
// A rebuilt row has what the letter's JSON can hold, whatever the types:
// PostgreSQL's own, those of its extensions, and domains, arrays and records of
// them. Some things come back otherwise:
//
//   - The bounds of arrays: they begin at 1. A jsonb[] or json[] that was declared
//     with one dimension, or with none, has one.
//   - NULL and null, which a letter cannot tell apart. A column of json or jsonb
//     that may be NULL is NULL, and one that must not be is null. In arrays and in
//     records it is NULL.
//   - The text of json, a floating-point zero's sign, and documents that jsonb
//     rejects, as of \u0000 and 1e200000. A letter whose column job is json or text
//     holds these; those documents in columns of json and json[] alone.
//   - The declaration of xml.
//   - A type with its own cast to json, unless its input takes that JSON. An hstore
//     comes back, but not in a record.
//
// A job that is not in the state of dead letters, since someone requeued it
// manually, say, is left alone and listed in Skipped. One that PostgreSQL rejects, by
// a constraint say, or that waits for a lock longer than Store.LockTimeout, is listed
// in Failures, and the others are redriven. With limit reached, Next says how to go
// on behind both.
//
// Of any number of callers at once one redrives a given letter, once. A letter
// or a queue row that someone else has locked is skipped. The number of round trips does not
// depend on the number of letters, as long as none is rejected.
//
// The role needs SELECT on the letters, UPDATE on their redriven_at and
// redriven_by, SELECT on the queue's key and state, and UPDATE on its state,
// attempts, scheduled_at, lease_owner, lease_until and last_error; where queue
// rows are gone, INSERT on the queue, and USAGE on the sequences of defaults.
//
// After an error nothing has changed, except after [ErrOutcomeUnknown], when
// nobody can know. Returns [ErrActor], [ErrLimit], [ErrFilter], [ErrNegative] or
// [ErrQueue] for an invalid argument, [ErrID] for an id that is not of the key's
// type, [ErrReadOnly] on a standby, else a [pgconn.PgError]. No error holds what a
// job held.
func Redrive(ctx context.Context, db DB, store Store, actor string, filter Filter, limit int) (*RedriveResult, error) {
	t, err := store.target(db)
	faults := []error{err, store.Queue.checkRevives(), checkActor(actor), filter.validate(), checkLimit(limit)}
	faults = append(faults, t.checkAged(filter.OlderThan, filter.YoungerThan))
	if filter.Status == StatusRedriven {
		faults = append(faults, fmt.Errorf("%w: redriven letters cannot be redriven", ErrFilter))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	var result *RedriveResult
	err = t.transact(ctx, func(tx pgx.Tx) error {
		r := &redrive{target: t, tx: tx, actor: actor, filter: filter, limit: limit}
		result = &r.result
		return r.run(ctx)
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// redrive is the transaction of one call.
type redrive struct {
	target
	tx     pgx.Tx
	actor  string
	filter Filter
	limit  int

	found   []letterKey
	jobs    []*deadJob // in the order of their oldest found letters
	rebuild string     // the statement that rebuilds rows, when some are to be
	result  RedriveResult
}

func (r *redrive) run(ctx context.Context) error {
	if err := r.find(ctx); err != nil {
		return r.filter.wrap("redrive", err)
	}
	if err := r.requeue(ctx); err != nil {
		return wrap("redrive", err)
	}
	r.report()
	return nil
}

// find locks the letters.
func (r *redrive) find(ctx context.Context) error {
	w := &where{args: []any{int64(r.limit)}, inPlace: r.inPlace}
	r.filter.conditions(w)
	b := &pgx.Batch{}
	queueNow(b, &r.result.RedrivenAt)
	r.queueFind(b, &r.found, sqlRedrive, w)
	if err := r.tx.SendBatch(ctx, b).Close(); err != nil || r.filter.IDs == nil {
		return err
	}
	return r.skipPassed(ctx)
}

// skipPassed says why letters that were asked for by id are not among the found ones.
func (r *redrive) skipPassed(ctx context.Context) error {
	got := pgtext.Array(len(r.found), func(i int) string { return r.found[i].DeadLetterID })
	w := &where{args: []any{array(r.filter.IDs), got}, inPlace: r.inPlace}
	w.args = append(append(w.args, cursor(r.filter.After).args()...), nextCursor(r.found, r.limit).args()...)
	others := r.filter
	others.IDs, others.After = nil, ""
	others.conditions(w)
	return pgxscan.Select(ctx, r.tx, &r.result.Skipped, r.in(sqlPassed, "{and}", w.sql.String()), w.args...)
}

// requeue sends back the jobs that can be redriven.
func (r *redrive) requeue(ctx context.Context) error {
	if r.jobs = groupByJob(r.found); len(r.jobs) == 0 {
		return nil
	}
	if err := r.lockAndCount(ctx); err != nil {
		return err
	}
	ready, gone := r.ready()
	if gone {
		var err error
		if r.rebuild, err = r.rebuildStatement(ctx, r.tx); err != nil {
			return err
		}
	}
	return r.write(ctx, r.tx, ready, r.queueWrites)
}

// report says what became of each job.
func (r *redrive) report() {
	result := &r.result
	result.Actor, result.Next = r.actor, string(nextCursor(r.found, r.limit))
	for _, job := range r.jobs {
		switch {
		case job.skip != "":
			for _, letter := range job.found {
				result.Skipped = append(result.Skipped, Skip{letter, job.id, job.skip})
			}
		case job.failure != nil:
			result.Failures = append(result.Failures, *job.failure)
		default:
			result.Redriven = append(result.Redriven, Redriven{job.id, job.letters, job.isGone()})
		}
	}
	result.RedrivenCount, result.SkippedCount = len(result.Redriven), len(result.Skipped)
	result.FailedCount = len(result.Failures)
}
