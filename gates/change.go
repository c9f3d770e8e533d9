package gates

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/gatesql"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// sqlLock waits for the applies that have read settings, and makes later applies wait.
// A row lock is not enough: it needs a row that exists, and a stream of applies could
// hold shared locks on the row for ever.
const sqlLock = `-- gates.lock
lock table {table} in exclusive mode`

// sqlClockAndType reads the time of a change, and whether the column value holds JSON.
const sqlClockAndType = `-- gates.clock_and_type
select to_jsonb(clock_timestamp() at time zone 'UTC') #>> '{}' || 'Z',
  pg_typeof((select c.value from {table} c where false)) in ('json'::regtype, 'jsonb'::regtype)`

// sqlWrite updates the rows of a setting, or inserts one if there is none. It does not
// rely on a unique key. The empty subquery gives the value the type of its column.
// Served by the primary key on key.
//
//	$1 key    text
//	$2 value  of the type of the column value
//	$3 time   timestamptz
//	$4 actor  text
const sqlWrite = `-- gates.write
with given as (
  select coalesce((select v.value from {table} v where false), $2) as value
), changed as (
  update {table} c
  set value = given.value, updated_at = $3::timestamptz, updated_by = $4::text
  from given
  where c.key = $1::text
  returning c.key
)
insert into {table} (key, value, updated_at, updated_by)
select $1::text, given.value, $3::timestamptz, $4::text
from given
where not exists (select from changed)`

// sqlTouch stores the actor and the time of a change. Served by the primary key on key.
//
//	$1 key    text
//	$2 time   timestamptz
//	$3 actor  text
const sqlTouch = `-- gates.touch
update {table} c
set updated_at = $2::timestamptz, updated_by = $3::text
where c.key = $1::text`

// sqlRemove deletes a setting. Served by the primary key on key.
//
//	$1 key  text
const sqlRemove = `-- gates.remove
delete from {table} c
where c.key = $1::text`

// change sets or unsets one setting.
type change struct {
	key   string
	value string
	unset bool
}

// write makes changes in one transaction, in two round trips and a commit. It calls
// changes after it has locked the table, with the database's time.
func (t Table) write(ctx context.Context, db DB, actor string, changes func(now time.Time) []change) error {
	table, err := gatesql.NewTable(t.Name)
	if err != nil {
		return err
	}
	// At a stricter isolation level the snapshot may be older than the lock.
	tx, err := pgtx.Start(ctx, db, pgtx.ReadCommitted)
	if err != nil {
		return fmt.Errorf("gates: begin: %w", err)
	}
	defer tx.Close(ctx)
	w, err := lock(ctx, tx, table.Name)
	if err != nil {
		return fmt.Errorf("gates: lock settings: %w", err)
	}
	w.actor = actor
	for _, c := range changes(w.now) {
		w.queue(c)
	}
	if err := tx.SendBatch(ctx, &w.Batch).Close(); err != nil {
		return fmt.Errorf("gates: write settings: %w", wrapColumn(err))
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("gates: commit: %w", err)
	}
	return nil
}

// writer collects the statements that make changes.
type writer struct {
	pgx.Batch
	table string // quoted
	actor string
	now   time.Time
	json  bool // the column value holds JSON
}

// lock locks the settings and returns a writer with the database's time.
func lock(ctx context.Context, tx pgx.Tx, table string) (*writer, error) {
	w := &writer{table: table}
	var now string
	b := &pgx.Batch{}
	b.Queue(w.sql(sqlLock))
	b.Queue(w.sql(sqlClockAndType)).QueryRow(func(row pgx.Row) error { return row.Scan(&now, &w.json) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	at, ok := parseTime(now)
	if !ok {
		return nil, fmt.Errorf("gates: the database's clock %q is not a time", now)
	}
	w.now = at.Time
	return w, nil
}

func (w *writer) queue(c change) {
	if c.unset {
		w.Queue(w.sql(sqlTouch), c.key, w.now, w.actor)
		w.Queue(w.sql(sqlRemove), c.key)
		return
	}
	value := c.value
	if w.json {
		value = toJSON(c)
	}
	w.Queue(w.sql(sqlWrite), c.key, value, w.now, w.actor)
}

func (w *writer) sql(statement string) string {
	return strings.ReplaceAll(statement, "{table}", w.table)
}

// toJSON returns a value as JSON. A gate is a boolean and the backoff base a number, so
// that other readers of the table need not parse text.
func toJSON(c change) string {
	values := Values{c.key: c.value}
	var value any = c.value
	if _, isGate := gateOf(c.key); isGate {
		value, _ = values.boolean(c.key, false)
	} else if c.key == BackoffBaseSec {
		value, _ = values.BackoffBase()
	}
	data, _ := json.Marshal(value) // a string, a boolean or an integer cannot fail
	return string(data)
}

// wrapColumn wraps the server's error for a value of the wrong type in ErrColumn.
func wrapColumn(err error) error {
	const dataException, datatypeMismatch = "22", "42804"
	if code := pgtx.Code(err); pgtx.Class(code) == dataException || code == datatypeMismatch {
		return fmt.Errorf("%w: %w", ErrColumn, err)
	}
	return err
}
