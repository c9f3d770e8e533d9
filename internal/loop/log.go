package loop

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Log logs what keeps a loop from reaping when it begins and when it ends, not each
// time it is met.
type Log struct {
	logger    *slog.Logger
	condition string // of the last pass; "": none
	pollEnds  bool   // a poll that finds nothing ends it
	rejected  string // the jobs that were rejected last
}

// NewLog makes the log of a loop.
func NewLog(logger *slog.Logger) *Log { return &Log{logger: logger} }

// Outcome is what a pass came to.
type Outcome struct {
	Refusal     string // why it was refused, or empty
	Err         error
	Unreachable bool // Err is of a connection that broke or could not be made
	Polled      bool // the pass was no more than a poll
}

// Pass logs the beginning of a condition and its end.
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

// Condition tells conditions apart: by the reason of a refusal, the SQLSTATE, or the
// type of what an error was at first.
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

// Writable says that a write has worked. So a poll that finds nothing ends what an
// apply met; else only an apply would tell.
func (l *Log) Writable() { l.pollEnds = true }

// Settling logs why nothing is reaped for a while.
func (l *Log) Settling(ctx context.Context, wait time.Duration) {
	l.logger.LogAttrs(ctx, slog.LevelInfo, "waiting for workers to renew leases", slog.Duration("wait", wait))
}

// Rejection is a job that was rejected.
type Rejection struct{ JobID, SQLState, Error string }

// Rejections are how many jobs a drain had rejected that were not before, and the
// first of them.
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

// reason is what may be logged of a rejection: what the mover said, and the message
// about a violated constraint, which names it. Other messages of PostgreSQL's
// may hold a row's values.
func (r Rejection) reason() string {
	if r.SQLState == "" || pgtx.Class(r.SQLState) == "23" {
		return r.Error
	}
	return ""
}
