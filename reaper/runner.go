package reaper

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/internal/loop"
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
		r.report(ctx, Pass{Err: err, Took: time.Since(began), looked: true})
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
		r.report(ctx, Pass{Result: nothing, Took: time.Since(began), looked: true})
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
		tx, err := r.begin(ctx, pgx.ReadOnly)
		if err != nil {
			return row, err
		}
		defer rollback(ctx, tx)
		db = tx
	}
	from := pgtype.Timestamptz{Time: r.seen, Valid: !r.seen.IsZero()}
	err = db.QueryRow(ctx, r.sql.look, r.grace(), from).Scan(
		&row.stale, &row.dueMicros, &row.staleBefore, &row.startedAt, &row.uptimeMicros)
	return row, err
}

// Reap drains what is stale, from the place that was seen already.
func (r *runner) Reap(ctx context.Context) (refused bool, err error) {
	o := order{actor: r.actor, limit: r.cfg.Batch, timeout: applyTimeout}
	if !r.seen.IsZero() { // a lease that ended at that very instant was not stale yet
		o.behind.leaseUntil = pgtype.Timestamptz{Time: r.seen.Add(-time.Microsecond), Valid: true}
	}
	began := time.Now()
	err = r.drain(ctx, o, func(result *ApplyResult, err error) {
		refused = err == nil && result.Refused
		r.report(ctx, Pass{Result: result, Err: err, Took: time.Since(began)})
		began = time.Now()
	})
	if err != nil {
		return false, err
	}
	r.first = false
	if !refused {
		r.seen = r.sight
	}
	return refused, nil
}

// Settling says in the log why nothing is reaped for a while.
func (r *runner) Settling(ctx context.Context, wait time.Duration) {
	r.diary.settling(ctx, r.Reaper.cfg.Logger, wait)
}

// Unreachable tells an error of the connection from others.
func (*runner) Unreachable(err error) bool { return unreachable(err) }

// report writes the diary and calls OnPass.
func (r *runner) report(ctx context.Context, pass Pass) {
	logger := r.Reaper.cfg.Logger
	r.diary.write(ctx, logger, pass)
	if r.cfg.OnPass == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			logger.LogAttrs(ctx, slog.LevelError, "on_pass panicked", slog.Any("panic", p))
		}
	}()
	r.cfg.OnPass(ctx, pass)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
