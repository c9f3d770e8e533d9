package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/reaper"
)

// database is a Database with all that is made of it once.
type database struct {
	cfg Database

	look   readOnly
	looker *reaper.Reaper // on look
	actor  *reaper.Reaper // on Act; nil without one

	settings  *gates.Table      // nil: the gates are no table
	store     *deadletter.Store // nil: the dead letters are no table
	sql       statements
	snapshots shared[*snapshot]
	pages     shared[any]
}

func newDatabase(d Database, fresh time.Duration) (*database, error) {
	if d.Colour == "" {
		d.Colour = "grey"
	}
	if d.Reaper.CountUpTo == 0 {
		d.Reaper.CountUpTo = defaultCountUpTo
	}
	db := &database{cfg: d, look: readOnly{d.Look}, settings: settingsOf(d.Reaper), store: storeOf(d.Reaper)}
	db.snapshots.fresh, db.pages.fresh = fresh, fresh
	var err, fault error
	if db.looker, fault = reaper.New(db.look, d.Reaper); fault != nil {
		err = errors.Join(err, fault)
	}
	if d.Act != nil {
		if db.actor, fault = reaper.New(d.Act, d.Reaper); fault != nil {
			err = errors.Join(err, fault)
		}
	}
	if db.sql, fault = db.statements(); fault != nil {
		err = errors.Join(err, fault)
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

// HasHistory reports whether there is a page of what was applied.
func (d *database) HasHistory() bool { return d.cfg.History != nil }

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

func storeOf(cfg reaper.Config) *deadletter.Store {
	store := &deadletter.Store{Queue: cfg.Queue.DeadLetterQueue()}
	switch mover := cfg.DeadLetter.(type) {
	case nil:
	case deadletter.Table:
		store.Table = mover
	case *deadletter.Table:
		store.Table = *mover
	default:
		return nil
	}
	return store
}

// statements renders the console's own SQL for the mapped names.
func (d *database) statements() (statements, error) {
	q := d.cfg.Reaper.Queue.DeadLetterQueue()
	var n pgtext.Names
	n.Name("queue", q.Table)
	letters, settings := pgx.Identifier{"job_dead_letter"}, pgx.Identifier{"queue_config"}
	if d.store != nil && len(d.store.Table.Name) > 0 {
		letters = d.store.Table.Name
	}
	if d.settings != nil && len(d.settings.Name) > 0 {
		settings = d.settings.Name
	}
	n.Name("letters", letters)
	n.Name("settings", settings)
	for _, column := range []struct{ placeholder, name string }{
		{"job_id", q.JobID}, {"job_kind", q.JobKind}, {"state", q.State}, {"attempts", q.Attempts},
		{"max_attempts", q.MaxAttempts}, {"scheduled_at", q.ScheduledAt}, {"lease_owner", q.LeaseOwner},
		{"lease_until", q.LeaseUntil}, {"last_error", q.LastError},
	} {
		if column.name == "" {
			n.Add("q."+column.placeholder, "null::text")
			continue
		}
		n.Add("q."+column.placeholder, "q."+n.Column(column.placeholder, column.name))
	}
	n.Label("leased", q.Leased)
	n.Label("dead", q.DeadLetter)
	return render(n), errors.Join(n.Faults...)
}

func render(n pgtext.Names) statements {
	names := strings.NewReplacer(n.Pairs...)
	return statements{
		expiries: names.Replace(sqlExpiries), letters: names.Replace(sqlLetters), job: names.Replace(sqlJob),
		states: names.Replace(sqlStates), stamps: names.Replace(sqlStamps),
	}
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

// read calls do in one snapshot that cannot write.
func (p readOnly) read(ctx context.Context, do func(pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead}
	tx, err := p.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	return errors.Join(do(tx), tx.Rollback(ctx))
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
	return &failure{status: t.status, Text: t.Text, cause: t.cause, trouble: t}
}
