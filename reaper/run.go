package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/internal/loop"
)

// applyTimeout is how long an apply of a loop may take.
const applyTimeout = 5 * time.Minute

// Run reaps until ctx ends, and returns its cause. It applies at once, unless the
// server has started less than Settle ago. It applies batch after batch while leases
// are stale, and then sleeps until the next lease expires. If Interval is no longer
// than the leases, a job is reaped at most one MinInterval after its lease's end. An idle
// Run makes one poll an Interval, and finds within one Interval that a gate was opened.
// It starts no goroutine.
//
// Any number of replicas may run it on the same queue, and none is a leader.
// Nothing but ctx ends it: an error, a closed gate and an outage are logged once
// when they begin and once when they end, and tried again, with growing waits after
// errors. Whether a lease is stale is decided by the database's clock alone.
//
// An outage is a state in which workers cannot renew either. The loop takes for one:
//   - a connection that breaks or cannot be made;
//   - a read-only database, no disk space, no memory, an I/O error;
//   - a poll that waits for a lock for longer than [Config.LockTimeout], or that takes
//     longer than 15 seconds or the server's statement_timeout;
//   - an apply that fails, or whose jobs all fail, for one of these reasons.
//
// A lock of single rows is no outage. An outage is over when polls work again. After an
// apply that failed in it, the loop must also have written to a leased row, which it
// rolls back. Then it waits for Settle, so that workers can renew. It does the same when
// a server answers that has not answered before, or that was a standby. Two servers that
// answer in turn are no restart.
//
// An apply that the server's statement_timeout ends, or that takes longer than 5
// minutes, is no outage: the loop tries again with half the batch, and doubles it
// after each success.
//
// A rejected job is tried again after an Interval, then after waits that double up
// to ten minutes. The loop remembers 10,000 such jobs, and tries the others at each full
// poll. A full poll also finds a row that was locked, and a lease whose end was moved into
// the past. It is made each Interval, or each half minute if that is shorter, but less
// often where full polls would take more than a tenth of the time.
//
// Run returns at once, with every problem of its arguments: a negative setting
// ([ErrNegative]), a MinInterval above Interval ([ErrInvalidIntervals]), an actor that is
// empty or not text ([ErrActor]), a Reaper whose DB is a transaction
// ([ErrInTransaction]), since now() stands still in it. With a single connection as DB
// it cannot connect again; use a pool.
func (r *Reaper) Run(ctx context.Context, actor string, cfg RunConfig) error {
	cfg = cfg.withDefaults()
	problems := []error{cfg.validate(), checkActor(actor)}
	if strings.TrimSpace(actor) == "" {
		problems = append(problems, fmt.Errorf("%w: it is empty", ErrActor))
	}
	if r.nested {
		problems = append(problems, ErrInTransaction)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return loop.Run(ctx, newRunner(r, actor, cfg), loop.Config{
		Batch:       cfg.Batch,
		Interval:    cfg.Interval,
		MinInterval: cfg.MinInterval,
		Settle:      cfg.Settle,
	})
}

var _ loop.Work = (*runner)(nil)

// runner is what the loop of a Run drives.
type runner struct {
	reaper *Reaper
	actor  string
	onPass func(ctx context.Context, pass Pass) // may be nil
	log    *loop.Log

	applied  bool      // an apply has met the gates, so a closed one is known
	cursor   time.Time // every lease that ended before it was seen; zero: none
	polledAt time.Time // by the process's clock
	polled   pollRow   // the last one
	rejected *loop.Rejected
}

func newRunner(r *Reaper, actor string, cfg RunConfig) *runner {
	return &runner{
		reaper:   r,
		actor:    actor,
		onPass:   cfg.OnPass,
		log:      loop.NewLog(r.cfg.Logger),
		rejected: loop.NewRejected(cfg.Interval),
	}
}

// Poll asks the database what there is to do. The first time there is always an apply
// to make, which finds out about a closed gate.
func (r *runner) Poll(ctx context.Context, all bool) (loop.PollResult, error) {
	began, from := time.Now(), r.cursor
	if all {
		from = time.Time{}
	}
	row, err := r.reaper.poll(ctx, from)
	elapsed := time.Since(began)
	if err != nil {
		err = fmt.Errorf("reaper: poll for stale leases: %w", err)
		r.report(ctx, Pass{Err: err, Took: elapsed}, true)
		return loop.PollResult{Elapsed: elapsed}, err
	}
	r.cursor, r.polledAt, r.polled = from, began, row
	if !row.stale && from.IsZero() {
		r.rejected.Clear()
	}
	result := row.result(elapsed)
	result.Stale = result.Stale || !r.applied
	if !result.Stale {
		r.cursor = row.staleBefore
		r.report(ctx, Pass{Result: &ApplyResult{Actor: r.actor, Actions: []Action{}}, Took: elapsed}, true)
	}
	return result, nil
}

// Reap drains what is stale, from the cursor on.
func (r *runner) Reap(ctx context.Context, batch int) (refused bool, err error) {
	req := request{actor: r.actor, limit: batch, timeout: applyTimeout}
	if !r.cursor.IsZero() { // a lease that ended at that very instant was not stale yet
		req.after.leaseUntil = pgtype.Timestamptz{Time: r.cursor.Add(-time.Microsecond), Valid: true}
	}
	if req.exclude, err = r.rejected.Excluded(r.cursor, r.polledAt); err != nil {
		return false, err
	}
	last, err := r.drain(ctx, req)
	if err != nil {
		return false, err
	}
	r.applied = true
	if last.Refused {
		return true, nil
	}
	if r.cursor.IsZero() {
		r.rejected.Tried(r.polledAt)
	}
	r.cursor = r.polled.staleBefore
	return false, nil
}

// drain applies batch after batch, reports each, and returns the last result.
func (r *runner) drain(ctx context.Context, req request) (*ApplyResult, error) {
	var last Pass
	var fresh loop.Rejections
	var all loop.AllRejected
	began := time.Now()
	_ = r.reaper.drain(ctx, req, func(result *ApplyResult, err error) {
		last = Pass{Result: result, Err: err, Took: time.Since(began)}
		if err != nil && last.Took >= applyTimeout {
			last.Err = fmt.Errorf("%w: %w", errTooLong, err)
		}
		if result != nil {
			r.keepFailures(result, &fresh, &all)
		}
		r.callOnPass(ctx, last)
		began = time.Now()
	})
	r.logPass(ctx, last, false)
	r.log.Rejections(ctx, fresh)
	if last.Err == nil {
		return last.Result, all.Err()
	}
	return nil, last.Err
}

// keepFailures remembers what an apply rejected.
func (r *runner) keepFailures(result *ApplyResult, fresh *loop.Rejections, all *loop.AllRejected) {
	if len(result.Actions) > 0 {
		all.Succeeded()
	}
	for _, failure := range result.Failures {
		rejection := loop.Rejection(failure)
		all.Add(rejection)
		if r.rejected.Add(failure.JobID, r.polled.now, r.polledAt) {
			fresh.Add(rejection)
		}
	}
}

// TryWrite tries what a worker does when it renews.
func (r *runner) TryWrite(ctx context.Context) error {
	began := time.Now()
	err := r.reaper.tryWrite(ctx)
	if faultOf(err) == loop.Other {
		r.log.Writable()
		return err
	}
	r.report(ctx, Pass{Err: err, Took: time.Since(began)}, false)
	return err
}

// Settling logs that the loop waits for Settle.
func (r *runner) Settling(ctx context.Context, wait time.Duration) { r.log.Settling(ctx, wait) }

// Fault says what an error means for the database.
func (*runner) Fault(err error) loop.Fault { return faultOf(err) }

// report logs a pass and passes it to OnPass.
func (r *runner) report(ctx context.Context, pass Pass, polled bool) {
	r.logPass(ctx, pass, polled)
	r.callOnPass(ctx, pass)
}

// logPass logs a pass, unless the loop is ending, since then its error says nothing.
func (r *runner) logPass(ctx context.Context, pass Pass, polled bool) {
	if ctx.Err() == nil || errors.Is(pass.Err, ErrOutcomeUnknown) {
		r.log.Pass(ctx, outcomeOf(pass, polled))
	}
}

// outcomeOf is what is logged of a pass.
func outcomeOf(pass Pass, polled bool) loop.Outcome {
	if pass.Err != nil {
		return loop.Outcome{Err: pass.Err, Unreachable: isUnreachable(pass.Err), Polled: polled}
	}
	return loop.Outcome{Refusal: pass.Result.Reason, Polled: polled}
}

// callOnPass calls OnPass, if there is one.
func (r *runner) callOnPass(ctx context.Context, pass Pass) {
	if r.onPass == nil {
		return
	}
	err := recoverPanic("on_pass", func() error {
		r.onPass(ctx, pass)
		return nil
	})
	if err != nil {
		r.reaper.cfg.Logger.LogAttrs(ctx, slog.LevelError, "on_pass panicked", slog.Any("err", errors.Unwrap(err)))
	}
}
