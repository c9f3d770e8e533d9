package main

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// watcher reads what the screen shows.
type watcher struct {
	*tool

	place string // which database this is

	letters, backlog, reaped, last string // the statements
}

// sight is what one look saw, and the JSON of watch --once.
type sight struct {
	Gates       *gateState    `json:"gates"`
	Backlog     []kindBacklog `json:"backlog"` // most stale leases first
	Reaped      []slice       `json:"reaped"`  // reaped jobs that the tables still have, oldest first
	Last        []reapedJob   `json:"last"`    // newest first
	DeadLetters letterCount   `json:"dead_letters"`

	took time.Duration
}

// kindBacklog counts the leased jobs of a kind.
type kindBacklog struct {
	Kind           string `json:"job_kind"`
	Stale          int    `json:"stale"`
	ToMove         int    `json:"to_move"` // of the stale ones
	Live           int    `json:"live"`
	OverdueSeconds int64  `json:"overdue_seconds"` // of the oldest stale lease that has a time
}

// slice is ten seconds.
type slice struct {
	Start  time.Time `json:"start"`
	Resets int       `json:"resets"`
	Moves  int       `json:"moves"`
}

// reapedJob is a job that was reset or moved.
type reapedJob struct {
	At          time.Time `json:"at"` // of a reset: about, by the backoff of the settings
	What        string    `json:"what"`
	Kind        string    `json:"job_kind"`
	JobID       string    `json:"job_id"`
	Attempts    int64     `json:"attempts"`
	MaxAttempts int64     `json:"max_attempts"`
	By          *string   `json:"by"` // of a move; a reset does not tell
}

// letterCount counts dead letters, up to letterBound.
type letterCount struct {
	Waiting  int `json:"waiting"` // not redriven
	LastHour int `json:"last_hour"`
}

// letterBound is how far dead letters are counted.
const letterBound = 10_000

// wholeHistory is how far back a first look goes.
const wholeHistory = time.Hour

// lookTimeout bounds one look.
const lookTimeout = 15 * time.Second

// sqlModesty bounds what a look takes of the server: time, and one process.
const sqlModesty = `-- operator.modesty
set local statement_timeout = '10s';
set local max_parallel_workers_per_gather = 0`

// watcher renders the statements.
func (t *tool) watcher() (*watcher, error) {
	w := &watcher{tool: t, place: place(t.pool.Config().ConnConfig)}
	for _, statement := range []struct {
		to  *string
		sql string
	}{{&w.backlog, sqlBacklog}, {&w.reaped, sqlReaped}, {&w.last, sqlLast}, {&w.letters, sqlLetters}} {
		sql := strings.NewReplacer("{stale}", stale, "{at}", resetAt).Replace(statement.sql)
		var err error
		if *statement.to, err = t.queue.render(sql); err != nil {
			return nil, err
		}
	}
	_, err := t.reaper(nil) // what is wrong with the mapping shows before the screen does
	return w, err
}

// place names a database for people, without a password.
func place(config *pgx.ConnConfig) string {
	if strings.HasPrefix(config.Host, "/") {
		return config.Database + " on this machine"
	}
	return config.Database + " on " + config.Host
}

// look reads everything in one snapshot that cannot write, with what was reaped
// in the last while.
func (w *watcher) look(ctx context.Context, since time.Duration) (*sight, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	began := time.Now()
	seen := &sight{}
	err := w.inReadOnly(ctx, func(tx pgx.Tx) error {
		base, redrivable, err := w.readSettings(ctx, tx, seen)
		if err != nil {
			return err
		}
		return w.readTables(ctx, tx, seen, since, base, redrivable)
	})
	seen.took = time.Since(began)
	return seen, err
}

// readSettings reads the gates, the backoff base, and what the dead letters have.
func (w *watcher) readSettings(ctx context.Context, tx pgx.Tx, seen *sight) (base float64, redrivable bool, err error) {
	if _, err = tx.Exec(ctx, sqlModesty); err != nil {
		return 0, false, err
	}
	if seen.Gates, err = w.readGates(ctx, tx); err != nil {
		return 0, false, err
	}
	name, err := pgtext.Name(split(w.queue.letters))
	if err != nil {
		return 0, false, err
	}
	err = tx.QueryRow(ctx, sqlRedrivable, name).Scan(&redrivable)
	return float64(seen.Gates.backoffBase), redrivable, err
}

// readTables reads the queue and the dead letters in one exchange.
func (w *watcher) readTables(
	ctx context.Context, tx pgx.Tx, seen *sight, since time.Duration, base float64, redrivable bool,
) error {
	undriven := "true"
	if redrivable {
		undriven = "d.redriven_at is null"
	}
	batch := &pgx.Batch{}
	batch.Queue(w.backlog, w.scope.grace).Query(into(&seen.Backlog))
	batch.Queue(w.reaped, since, base).Query(into(&seen.Reaped))
	batch.Queue(w.last, since, base).Query(into(&seen.Last))
	batch.Queue(strings.Replace(w.letters, "{undriven}", undriven, 1), letterBound).QueryRow(func(row pgx.Row) error {
		return row.Scan(&seen.DeadLetters.Waiting, &seen.DeadLetters.LastHour)
	})
	return tx.SendBatch(ctx, batch).Close()
}

// into collects rows by the places of their columns.
func into[T any](list *[]T) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var err error
		*list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[T])
		return err
	}
}
