package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/internal/loop"
)

// applyTimeout is how long an apply of a loop may take.
const applyTimeout = 5 * time.Minute

var _ loop.Work = (*runner)(nil)

// runner is what the loop of a Run drives.
type runner struct {
	reaper *Reaper
	actor  string
	onPass func(ctx context.Context, pass Pass) // may be nil
	log    conditionLog

	applied  bool      // an apply has met the gates, so a closed one is known
	cursor   time.Time // every lease that ended before it was seen; zero: none
	polledAt time.Time // by the process's clock
	polled   pollRow   // the last one
	rejected rejectedJobs
}

func newRunner(r *Reaper, actor string, cfg RunConfig) *runner {
	return &runner{
		reaper:   r,
		actor:    actor,
		onPass:   cfg.OnPass,
		log:      conditionLog{logger: r.cfg.Logger},
		rejected: rejectedJobs{firstWait: cfg.Interval},
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
		r.rejected.clear()
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
	if req.exclude, err = r.rejected.excluded(r.cursor, r.polledAt); err != nil {
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
		r.rejected.tried(r.polledAt)
	}
	r.cursor = r.polled.staleBefore
	return false, nil
}

// drain applies batch after batch, reports each, and returns the last result.
func (r *runner) drain(ctx context.Context, req request) (*ApplyResult, error) {
	var last Pass
	var fresh rejections
	var all allRejected
	began := time.Now()
	_ = r.reaper.drain(ctx, req, func(result *ApplyResult, err error) {
		last = Pass{Result: result, Err: err, Took: time.Since(began)}
		if err != nil && last.Took >= applyTimeout {
			last.Err = fmt.Errorf("%w: %w", errTooLong, err)
		}
		if result != nil {
			fresh.add(r.rejected.add(result.Failures, r.polled.now, r.polledAt))
			all.add(result)
		}
		r.callOnPass(ctx, last)
		began = time.Now()
	})
	r.log.pass(ctx, last, false)
	r.log.rejections(ctx, fresh)
	if last.Err == nil {
		return last.Result, all.err()
	}
	return nil, last.Err
}

// TryWrite tries what a worker does when it renews.
func (r *runner) TryWrite(ctx context.Context) error {
	began := time.Now()
	err := r.reaper.tryWrite(ctx)
	if faultOf(err) == loop.Other {
		r.log.writable()
		return err
	}
	r.report(ctx, Pass{Err: err, Took: time.Since(began)}, false)
	return err
}

// Settling says in the log why nothing is reaped for a while.
func (r *runner) Settling(ctx context.Context, wait time.Duration) { r.log.settling(ctx, wait) }

// Fault tells what an error says of the database.
func (*runner) Fault(err error) loop.Fault { return faultOf(err) }

// report logs a pass and tells OnPass of it.
func (r *runner) report(ctx context.Context, pass Pass, polled bool) {
	r.log.pass(ctx, pass, polled)
	r.callOnPass(ctx, pass)
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
		r.log.logger.LogAttrs(ctx, slog.LevelError, "on_pass panicked", slog.Any("err", errors.Unwrap(err)))
	}
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
