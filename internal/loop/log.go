package loop

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Log logs a condition that stops a loop from reaping once when it begins and once when it
// ends, not after each pass.
type Log struct {
	logger    *slog.Logger
	condition string // the condition of the last pass, or ""
	pollEnds  bool   // a poll without stale leases ends the condition
	rejected  string // identifies the rejections that were logged last
}

// NewLog returns the log of a loop.
func NewLog(logger *slog.Logger) *Log { return &Log{logger: logger} }

// Outcome is the outcome of a pass.
type Outcome struct {
	Refusal     string // the reason for a refusal, or empty
	Err         error
	Unreachable bool // Err is an error of the connection
	Polled      bool // the pass was only a poll
}

// Pass logs the beginning or the end of a condition.
func (l *Log) Pass(ctx context.Context, o Outcome) {
	condition := o.Condition()
	if condition == l.condition || condition == "" && o.Polled && !l.pollEnds {
		return
	}
	l.condition, l.pollEnds = condition, o.Polled || o.Unreachable
	switch {
	case condition == "":
		l.logger.LogAttrs(ctx, slog.LevelInfo, "reaper recovered")
	case o.Err == nil:
		l.logger.LogAttrs(ctx, slog.LevelWarn, "reaper refused", slog.String("reason", o.Refusal))
	case o.Unreachable:
		l.logger.LogAttrs(ctx, slog.LevelError, "database unreachable", slog.Any("err", o.Err))
	default:
		l.logger.LogAttrs(ctx, slog.LevelError, "pass failed", slog.Any("err", o.Err))
	}
}

// Condition identifies a condition by the reason for a refusal, the SQLSTATE, or the type
// of the innermost error.
func (o Outcome) Condition() string {
	switch {
	case o.Err == nil:
		return o.Refusal
	case o.Unreachable:
		return "unreachable"
	case pgtx.Code(o.Err) != "":
		return pgtx.Code(o.Err)
	}
	return fmt.Sprintf("%T", rootOf(o.Err))
}

// rootOf returns the innermost error that err wraps. Of joined errors it takes the last.
func rootOf(err error) error {
	for {
		switch wrapper := err.(type) { //nolint:errorlint // it unwraps one level at a time
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

// Writable records that a write has succeeded. After it, a poll without stale leases ends
// the condition of an apply that failed. Without it, only an apply ends it.
func (l *Log) Writable() { l.pollEnds = true }

// Settling logs that the loop waits for workers and reaps nothing meanwhile.
func (l *Log) Settling(ctx context.Context, wait time.Duration) {
	l.logger.LogAttrs(ctx, slog.LevelInfo, "waiting for workers to renew leases", slog.Duration("wait", wait))
}

// Rejection is a job that was rejected.
type Rejection struct{ JobID, SQLState, Error string }

// Rejections counts the jobs that a drain rejected for the first time, and has the first
// of them.
type Rejections struct {
	count int
	first Rejection
}

// Add counts a job.
func (r *Rejections) Add(job Rejection) {
	if r.count == 0 {
		r.first = job
	}
	r.count++
}

// Rejections logs how many jobs were rejected, and the first of them.
func (l *Log) Rejections(ctx context.Context, r Rejections) {
	rejected := fmt.Sprint(r.count, r.first.JobID, r.first.SQLState)
	if r.count == 0 || rejected == l.rejected {
		return
	}
	l.rejected = rejected
	l.logger.LogAttrs(ctx, slog.LevelWarn, "jobs rejected",
		slog.Int("failed_count", r.count),
		slog.String("job_id", r.first.JobID),
		slog.String("sqlstate", r.first.SQLState),
		slog.String("reason", r.first.reason()),
	)
}

// reason returns the error text if it is safe to log: from the mover, or about a violated
// constraint. Other messages of PostgreSQL may contain a row's values.
func (r Rejection) reason() string {
	if r.SQLState == "" || pgtx.Class(r.SQLState) == "23" {
		return r.Error
	}
	return ""
}
