package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// conditionLog logs what keeps a loop from reaping when it begins and when it
// ends, not each time it is met.
type conditionLog struct {
	logger    *slog.Logger
	condition string // of the last pass; "": none
	pollEnds  bool   // a poll that finds nothing ends it
	rejected  string // the jobs that were rejected last
}

// pass logs the beginning of a condition and its end. polled says that the pass
// was no more than a poll.
func (l *conditionLog) pass(ctx context.Context, pass Pass, polled bool) {
	if ctx.Err() != nil && !errors.Is(pass.Err, ErrOutcomeUnknown) {
		return // the loop is being ended, and that is no condition
	}
	condition := conditionOf(pass)
	if condition == l.condition || condition == "" && polled && !l.pollEnds {
		return
	}
	l.condition, l.pollEnds = condition, polled || condition == conditionUnreachable
	l.write(ctx, pass)
}

// write logs the condition of a pass.
func (l *conditionLog) write(ctx context.Context, pass Pass) {
	switch {
	case l.condition == "":
		l.logger.LogAttrs(ctx, slog.LevelInfo, "reaper recovered")
	case pass.Err == nil:
		l.logger.LogAttrs(ctx, slog.LevelWarn, "reaper refused", slog.String("reason", pass.Result.Reason))
	case l.condition == conditionUnreachable:
		l.logger.LogAttrs(ctx, slog.LevelError, "database unreachable", slog.Any("err", pass.Err))
	default:
		l.logger.LogAttrs(ctx, slog.LevelError, "pass failed", slog.Any("err", pass.Err))
	}
}

// conditionUnreachable is the condition of a connection that broke or could not be
// made.
const conditionUnreachable = "unreachable"

// conditionOf tells conditions apart: by the reason of a refusal, the SQLSTATE, or
// the type of what an error was at first.
func conditionOf(pass Pass) string {
	var pgErr *pgconn.PgError
	switch {
	case pass.Err == nil:
		return pass.Result.Reason
	case isUnreachable(pass.Err):
		return conditionUnreachable
	case errors.As(pass.Err, &pgErr):
		return pgErr.Code
	}
	return fmt.Sprintf("%T", rootOf(pass.Err))
}

// rootOf returns what an error was before it was wrapped; of several, the last.
func rootOf(err error) error {
	for {
		switch wrapper := err.(type) { //nolint:errorlint // it goes from one wrapper to the next
		case interface{ Unwrap() error }:
			if wrapper.Unwrap() == nil {
				return err
			}
			err = wrapper.Unwrap()
		case interface{ Unwrap() []error }:
			several := wrapper.Unwrap()
			if len(several) == 0 {
				return err
			}
			err = several[len(several)-1]
		default:
			return err
		}
	}
}

// writable says that a write has worked. So a poll that finds nothing ends what an
// apply met; else only an apply would tell.
func (l *conditionLog) writable() { l.pollEnds = true }

// settling logs why nothing is reaped for a while.
func (l *conditionLog) settling(ctx context.Context, wait time.Duration) {
	l.logger.LogAttrs(ctx, slog.LevelInfo, "waiting for workers to renew leases", slog.Duration("wait", wait))
}

// rejections are how many jobs a drain had rejected that were not before, and the
// first of them.
type rejections struct {
	count int
	first Failure
}

func (r *rejections) add(failures []Failure) {
	if r.count == 0 && len(failures) > 0 {
		r.first = failures[0]
	}
	r.count += len(failures)
}

// rejections logs how many jobs were rejected, and the first of them.
func (l *conditionLog) rejections(ctx context.Context, r rejections) {
	rejected := fmt.Sprint(r.count, r.first.JobID, r.first.SQLState)
	if r.count == 0 || rejected == l.rejected {
		return
	}
	l.rejected = rejected
	l.logger.LogAttrs(ctx, slog.LevelWarn, "jobs rejected",
		slog.Int("failed_count", r.count),
		slog.String("job_id", r.first.JobID),
		slog.String("sqlstate", r.first.SQLState),
		slog.String("reason", reason(r.first)),
	)
}

// reason is what may be logged of a failure: what the mover said, and the message
// about a violated constraint, which names it. Other messages of PostgreSQL's
// may hold a row's values.
func reason(f Failure) string {
	if f.SQLState == "" || pgtx.Class(f.SQLState) == "23" {
		return f.Error
	}
	return ""
}
