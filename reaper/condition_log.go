package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// diary logs what a loop meets when it changes, not each time it is met.
type diary struct {
	trouble  string // what the last pass met; "": nothing
	looked   bool   // a look met it, so a look that meets none ends it
	failures string // the jobs that were turned away last
}

// write logs the beginning of trouble and its end. looked says that the pass was
// no more than a look.
func (d *diary) write(ctx context.Context, logger *slog.Logger, pass Pass, looked bool) {
	if ctx.Err() != nil && !errors.Is(pass.Err, ErrOutcomeUnknown) {
		return // the loop is being ended, and that is no trouble
	}
	if trouble := troubleOf(pass); d.changes(trouble, looked) {
		d.trouble, d.looked = trouble, looked || trouble == unreached
		d.writeTrouble(ctx, logger, pass)
	}
}

// changes reports whether a pass met something else than the last one. Of what an
// apply met, a look that finds nothing does not tell whether one would again.
func (d *diary) changes(trouble string, looked bool) bool {
	if trouble == "" && looked && !d.looked {
		return false
	}
	return trouble != d.trouble
}

// unreached is the trouble of a connection that broke or could not be made.
const unreached = "unreached"

// troubleOf names what a pass met, apart from details that differ each time.
func troubleOf(pass Pass) string {
	var pgErr *pgconn.PgError
	switch {
	case pass.Err == nil:
		return pass.Result.Reason
	case unreachable(pass.Err):
		return unreached
	case errors.As(pass.Err, &pgErr):
		return pgErr.Code
	}
	return figures().ReplaceAllString(pass.Err.Error(), "#")
}

// figures matches what may differ each time in the text of one error: numbers,
// and the keys made of them.
var figures = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\da-fA-F-]*\d[\da-fA-F-]*`) })

func (d *diary) writeTrouble(ctx context.Context, logger *slog.Logger, pass Pass) {
	switch {
	case d.trouble == "":
		logger.LogAttrs(ctx, slog.LevelInfo, "reaper passes again")
	case pass.Err == nil:
		logger.LogAttrs(ctx, slog.LevelWarn, "reaper refused", slog.String("reason", pass.Result.Reason))
	case unreachable(pass.Err):
		logger.LogAttrs(ctx, slog.LevelError, "connection lost or database out of reach", slog.Any("err", pass.Err))
	default:
		logger.LogAttrs(ctx, slog.LevelError, "pass failed", slog.Any("err", pass.Err))
	}
}

// toll is how many jobs a drain had turned away, and the first of them.
type toll struct {
	count int
	first Failure
}

func (t *toll) add(result *ApplyResult) {
	if result == nil || result.FailedCount == 0 {
		return
	}
	if t.count == 0 {
		t.first = result.Failures[0]
	}
	t.count += result.FailedCount
}

// writeFailures logs how many jobs were turned away, and the first of them.
func (d *diary) writeFailures(ctx context.Context, logger *slog.Logger, t toll) {
	failures := fmt.Sprint(t.count, t.first.JobID, t.first.SQLState)
	if t.count == 0 || failures == d.failures {
		return
	}
	d.failures = failures
	logger.LogAttrs(ctx, slog.LevelWarn, "jobs turned away",
		slog.Int("failed_count", t.count),
		slog.String("job_id", t.first.JobID),
		slog.String("sqlstate", t.first.SQLState),
		slog.String("reason", reason(t.first)),
	)
}

// reason is what may be logged of a failure: what the mover said, and the message
// about a violated constraint, which names it. Other messages of PostgreSQL's
// may hold a row's values.
func reason(f Failure) string {
	if f.SQLState == "" || class(f.SQLState) == "23" {
		return f.Error
	}
	return ""
}

func (d *diary) settling(ctx context.Context, logger *slog.Logger, wait time.Duration) {
	logger.LogAttrs(ctx, slog.LevelInfo, "settling: workers may renew before leases are reaped",
		slog.Duration("wait", wait))
}
