package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/internal/loop"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// applyTimeout is how long an apply of a loop may take.
const applyTimeout = 5 * time.Minute

// errTooLong is wrapped by the error of a loop's apply that reached applyTimeout.
var errTooLong = errors.New("reaper: the apply took too long")

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

// Poll asks the database what there is to do. The first time there is an apply to
// make in any case, which meets a closed gate.
func (r *runner) Poll(ctx context.Context, all bool) (loop.Sight, error) {
	began, from := time.Now(), r.cursor
	if all {
		from = time.Time{}
	}
	row, err := r.reaper.poll(ctx, from)
	elapsed := time.Since(began)
	if err != nil {
		err = fmt.Errorf("reaper: poll for stale leases: %w", err)
		r.report(ctx, Pass{Err: err, Took: elapsed}, true)
		return loop.Sight{Elapsed: elapsed}, err
	}
	r.cursor, r.polledAt, r.polled = from, began, row
	if !row.stale && from.IsZero() {
		r.rejected.Clear()
	}
	sight := row.sight(elapsed)
	sight.Stale = sight.Stale || !r.applied
	if !sight.Stale {
		r.cursor = row.staleBefore
		r.report(ctx, Pass{Result: &ApplyResult{Actor: r.actor, Actions: []Action{}}, Took: elapsed}, true)
	}
	return sight, nil
}

func (row pollRow) sight(elapsed time.Duration) loop.Sight {
	sight := loop.Sight{
		Stale:   row.stale,
		Server:  loop.Server{Started: row.startedAt, Standby: row.standby},
		Uptime:  micros(row.uptimeMicros),
		Elapsed: elapsed,
	}
	if row.dueMicros != nil {
		due := micros(*row.dueMicros)
		sight.Due = &due
	}
	return sight
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
		all.Settled()
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

// Settling says in the log why nothing is reaped for a while.
func (r *runner) Settling(ctx context.Context, wait time.Duration) { r.log.Settling(ctx, wait) }

// Fault tells what an error says of the database.
func (*runner) Fault(err error) loop.Fault { return faultOf(err) }

// report logs a pass and tells OnPass of it.
func (r *runner) report(ctx context.Context, pass Pass, polled bool) {
	r.logPass(ctx, pass, polled)
	r.callOnPass(ctx, pass)
}

// logPass logs a pass, unless the loop is being ended, which is no condition.
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

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// faultOf tells what an error says of the database. The gates of a source of the
// caller's own may be in another one.
func faultOf(err error) loop.Fault {
	var source *sourceError
	var blocked *blockedError
	switch {
	case errors.Is(err, errTooLong):
		return loop.TimedOut
	case isUnreachable(err):
		return loop.Outage
	case errors.As(err, &source):
		return loop.Other
	case errors.As(err, &blocked) && pgtx.Code(err) == pgtx.CodeLockNotAvailable:
		return loop.Other // the dead letters' table is locked
	}
	return loop.FaultOf(err)
}

// isUnreachable tells an error of the connection from one of the caller's code or the
// server's.
func isUnreachable(err error) bool {
	var hook *hookError
	var mover *moverError
	var source *sourceError
	if errors.As(err, &mover) { // its SQLSTATE may be another server's
		return false
	}
	if pgtx.Code(err) == "" && (errors.As(err, &hook) || errors.As(err, &source) || errors.Is(err, errTooLong)) {
		return false
	}
	return errors.Is(err, ErrOutcomeUnknown) || pgtx.IsUnreachable(err)
}
