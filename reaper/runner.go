package reaper

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/internal/loop"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// How long a look and an apply of a loop may take: a connection that died
// without a word would otherwise hold the loop for as long as TCP keeps hoping.
const (
	lookTimeout  = 15 * time.Second
	applyTimeout = 5 * time.Minute
)

var _ loop.Work = (*runner)(nil)

// runner is what the loop of a Run drives.
type runner struct {
	*Reaper
	actor string
	cfg   RunConfig
	first bool      // the first pass applies in any case, and so meets a closed gate
	seen  time.Time // every lease that ended before it was seen; zero: none
	sight time.Time // leases are stale up to here, by the last look
	diary diary
}

// lookRow is the row of sqlLook.
type lookRow struct {
	stale        bool
	dueMicros    *int64
	staleBefore  time.Time
	startedAt    time.Time
	uptimeMicros int64
}

// Look asks the database what there is to do.
func (r *runner) Look(ctx context.Context, all bool) (loop.Sight, error) {
	began := time.Now()
	if all {
		r.seen = time.Time{}
	}
	row, err := r.look(ctx)
	if err != nil {
		err = fmt.Errorf("reaper: look for stale leases: %w", err)
		r.looked(ctx, Pass{Err: err, Took: time.Since(began)})
		return loop.Sight{}, err
	}
	r.sight = row.staleBefore
	sight := loop.Sight{
		Stale:  row.stale || r.first,
		Server: row.startedAt,
		Uptime: micros(row.uptimeMicros),
	}
	if row.dueMicros != nil {
		due := micros(*row.dueMicros)
		sight.Due = &due
	}
	if !sight.Stale {
		r.seen = r.sight
		nothing := &ApplyResult{Actor: r.actor, Actions: []Action{}}
		r.looked(ctx, Pass{Result: nothing, Took: time.Since(began)})
	}
	return sight, nil
}

// rowQuerier is what pools and connections have beyond DB. With it a look takes
// no transaction.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func (r *runner) look(ctx context.Context) (row lookRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	db, ok := r.db.(rowQuerier)
	if !ok {
		tx, err := r.beginReadOnly(ctx)
		if err != nil {
			return row, err
		}
		defer pgtx.Rollback(ctx, tx)
		db = tx
	}
	from := pgtype.Timestamptz{Time: r.seen, Valid: !r.seen.IsZero()}
	err = db.QueryRow(ctx, r.sql.look, r.scope, from).Scan(
		&row.stale, &row.dueMicros, &row.staleBefore, &row.startedAt, &row.uptimeMicros)
	return row, err
}

// Reap drains what is stale, from the place that was seen already.
func (r *runner) Reap(ctx context.Context) (refused bool, err error) {
	req := request{actor: r.actor, limit: r.cfg.Batch, timeout: applyTimeout}
	if !r.seen.IsZero() { // a lease that ended at that very instant was not stale yet
		req.after.leaseUntil = pgtype.Timestamptz{Time: r.seen.Add(-time.Microsecond), Valid: true}
	}
	var last Pass
	var failed toll
	began := time.Now()
	err = r.drain(ctx, req, func(result *ApplyResult, err error) {
		last = Pass{Result: result, Err: err, Took: time.Since(began)}
		failed.add(result)
		r.onPass(ctx, last)
		began = time.Now()
	})
	r.diary.write(ctx, r.logger(), last, false)
	r.diary.writeFailures(ctx, r.logger(), failed)
	if err != nil {
		return false, err
	}
	r.first = false
	if !last.Result.Refused {
		r.seen = r.sight
	}
	return last.Result.Refused, nil
}

// Settling says in the log why nothing is reaped for a while.
func (r *runner) Settling(ctx context.Context, wait time.Duration) {
	r.diary.settling(ctx, r.logger(), wait)
}

// Unreachable tells an error of the connection from others.
func (*runner) Unreachable(err error) bool { return isUnreachable(err) }

// looked reports a look that found nothing new, or an error.
func (r *runner) looked(ctx context.Context, pass Pass) {
	r.diary.write(ctx, r.logger(), pass, true)
	r.onPass(ctx, pass)
}

// onPass calls OnPass, if there is one.
func (r *runner) onPass(ctx context.Context, pass Pass) {
	if r.cfg.OnPass == nil {
		return
	}
	err := guarded("on_pass", func() error {
		r.cfg.OnPass(ctx, pass)
		return nil
	})
	if err != nil {
		r.logger().LogAttrs(ctx, slog.LevelError, "on_pass panicked", slog.Any("err", err))
	}
}

func (r *runner) logger() *slog.Logger { return r.Reaper.cfg.Logger }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
