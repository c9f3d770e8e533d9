package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// database is a Database with all that is made of it once.
type database struct {
	cfg   Database
	given Database // as it was in the configuration

	look   readOnly
	looker *reaper.Reaper // on look
	actor  *reaper.Reaper // on Act; nil without one

	settings  *gates.Table      // nil: the gates are no table
	store     *deadletter.Store // nil: the dead letters are no table
	sql       statements
	snapshots shared[*snapshot]
	pages     shared[any]
	countFrom time.Time // when letters are counted again; of the one read that runs
}

func newDatabase(d Database, fresh time.Duration, log *slog.Logger) (*database, error) {
	given := d
	if d.Colour == "" {
		d.Colour = "grey"
	}
	if d.Reaper.CountUpTo == 0 {
		d.Reaper.CountUpTo = defaultCountUpTo
	}
	db := &database{cfg: d, given: given, look: readOnly{d.Look}, settings: settingsOf(d.Reaper), store: storeOf(d)}
	log = log.With(slog.String("database", d.Name))
	db.snapshots.fresh, db.pages.fresh = fresh, fresh
	db.snapshots.log, db.pages.log = log, log
	var err, fault error
	if db.looker, fault = reaper.New(db.look, d.Reaper); fault != nil {
		err = errors.Join(err, fault)
	}
	if d.Act != nil {
		if db.actor, fault = reaper.New(d.Act, d.Reaper); fault != nil {
			err = errors.Join(err, fault)
		}
	}
	if db.sql, fault = db.statements(); err == nil { // New has reported most of these
		err = fault
	}
	if err != nil {
		return db, fmt.Errorf("%w %q: %w", ErrDatabase, d.Name, err)
	}
	return db, nil
}

// Name is for the templates.
func (d *database) Name() string { return d.cfg.Name }

// Colour is for the templates.
func (d *database) Colour() string { return d.cfg.Colour }

// HasLetters reports whether there are pages of dead letters.
func (d *database) HasLetters() bool { return d.store != nil }

// InPlace reports whether the queue's dead rows are the letters.
func (d *database) InPlace() bool { return d.store != nil && d.store.InPlace }

// Aged reports whether letters have ages.
func (d *database) Aged() bool { return d.store != nil && (!d.store.InPlace || d.store.MovedAt != "") }

// HasHistory reports whether there is a page of what was applied.
func (d *database) HasHistory() bool { return d.cfg.History != nil }

// expire has the next who asks read again, after a change.
func (d *database) expire() {
	d.snapshots.expire()
	d.pages.expire()
}

// acts reports whether anything can be changed here.
func (d *database) acts() bool { return d.cfg.Act != nil }

func settingsOf(cfg reaper.Config) *gates.Table {
	switch source := cfg.Gates.(type) {
	case nil:
		return &gates.Table{}
	case gates.Table:
		return &source
	case *gates.Table:
		return source
	}
	return nil
}

// storeOf is where the dead letters are, nil where the console cannot know.
func storeOf(d Database) *deadletter.Store {
	if d.Letters != nil {
		return d.Letters
	}
	store := &deadletter.Store{Queue: d.Reaper.Queue.DeadLetterQueue()}
	switch mover := d.Reaper.DeadLetter.(type) {
	case nil:
	case deadletter.Table:
		store.Table = mover
	case *deadletter.Table:
		store.Table = *mover
	case deadletter.InPlace, *deadletter.InPlace:
		store.InPlace = true
	default:
		return nil
	}
	return store
}

// readOnly is a pool whose transactions cannot write and whose statements end.
type readOnly struct{ pool *pgxpool.Pool }

// sqlBounds bounds what a read takes of the server: time, and one process.
const sqlBounds = `-- console.bounds
set local statement_timeout = '8s';
set local max_parallel_workers_per_gather = 0`

// Begin begins a transaction that cannot write.
func (p readOnly) Begin(ctx context.Context) (pgx.Tx, error) {
	return p.BeginTx(ctx, pgx.TxOptions{})
}

// BeginTx begins a transaction that cannot write, whatever the options say.
func (p readOnly) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	options.AccessMode = pgx.ReadOnly
	tx, err := p.pool.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, sqlBounds); err != nil {
		return nil, errors.Join(err, tx.Rollback(ctx))
	}
	return tx, nil
}

// read calls do in one snapshot that cannot write, and ends it also if do panics.
func (p readOnly) read(ctx context.Context, do func(pgx.Tx) error) (err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead}
	tx, err := p.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback(ctx)) }()
	return do(tx)
}

// share reads a page of this database once for all who ask for it now.
func share[T any](rq *request, key string, read func(context.Context) (T, error)) (T, *trouble, error) {
	var none T
	got, err := rq.db.pages.get(rq.Context(), key, func(ctx context.Context) (any, error) { return read(ctx) })
	if err != nil {
		return none, nil, err
	}
	if got.at.IsZero() {
		return none, nil, got.trouble.failure()
	}
	value, _ := got.value.(T) // a key stands for one type
	return value, got.trouble, nil
}

// failure is the answer when there is nothing to show but the trouble. What is wrong
// with the request is wrong at once, not since.
func (t *trouble) failure() error {
	if t.status < http.StatusInternalServerError {
		return &failure{status: t.status, Text: t.Text, cause: t.cause}
	}
	return &failure{status: t.status, Text: t.Text, trouble: t} // its cause is in the log
}
