package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// diary logs what a loop meets when it changes, not each time it is met.
type diary struct {
	trouble  string // what the last pass met; "": nothing
	failures string // the jobs that were turned away last
}

// write logs the beginning of trouble, its end, and jobs that are turned away.
func (d *diary) write(ctx context.Context, logger *slog.Logger, pass Pass) {
	if ctx.Err() != nil {
		return // the loop is being ended, and that is no trouble
	}
	if trouble := troubleOf(pass); trouble != d.trouble {
		d.trouble = trouble
		d.writeTrouble(ctx, logger, pass)
	}
	if pass.Result != nil && pass.Result.FailedCount > 0 {
		d.writeFailures(ctx, logger, pass.Result)
	}
}

// troubleOf names what a pass met, apart from details that differ each time.
func troubleOf(pass Pass) string {
	var pgErr *pgconn.PgError
	switch {
	case pass.Err == nil:
		return pass.Result.Reason
	case unreachable(pass.Err):
		return "unreachable"
	case errors.As(pass.Err, &pgErr):
		return pgErr.Code
	}
	return pass.Err.Error()
}

func (d *diary) writeTrouble(ctx context.Context, logger *slog.Logger, pass Pass) {
	switch {
	case d.trouble == "":
		logger.LogAttrs(ctx, slog.LevelInfo, "reaper passes again")
	case pass.Err == nil:
		logger.LogAttrs(ctx, slog.LevelWarn, "reaper refused", slog.String("reason", pass.Result.Reason))
	case unreachable(pass.Err):
		logger.LogAttrs(ctx, slog.LevelError, "database out of reach", slog.Any("err", pass.Err))
	default:
		logger.LogAttrs(ctx, slog.LevelError, "pass failed", slog.Any("err", pass.Err))
	}
}

// writeFailures logs how many jobs were turned away, and the first of them. Its
// message may hold values of the row's, so that is left out.
func (d *diary) writeFailures(ctx context.Context, logger *slog.Logger, result *ApplyResult) {
	first := result.Failures[0]
	failures := fmt.Sprint(result.FailedCount, first.JobID, first.SQLState)
	if failures == d.failures {
		return
	}
	d.failures = failures
	logger.LogAttrs(ctx, slog.LevelWarn, "jobs turned away",
		slog.Int("failed_count", result.FailedCount),
		slog.String("job_id", first.JobID),
		slog.String("sqlstate", first.SQLState),
	)
}

func (d *diary) settling(ctx context.Context, logger *slog.Logger, wait time.Duration) {
	logger.LogAttrs(ctx, slog.LevelInfo, "settling: workers may renew before leases are reaped",
		slog.Duration("wait", wait))
}
