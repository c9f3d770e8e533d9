package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Page is some of the letters, oldest first.
type Page struct {
	EvaluatedAt time.Time `json:"evaluated_at"` // the transaction's start, by the database's clock
	Limit       int       `json:"limit"`
	Letters     []Letter  `json:"letters"`

	// Next is the Filter.After of the page behind this one. It is empty when the
	// page is not full.
	Next string `json:"next,omitempty"`
}

// Letter is a dead letter, a job whose attempts are used up. Times are the
// database's, in UTC, held between the years 1 and 9999.
type Letter struct {
	DeadLetterID string          `json:"dead_letter_id"` // the keys in their text form
	JobID        string          `json:"job_id"`
	JobKind      string          `json:"job_kind"`
	Attempts     int             `json:"attempts"`
	MaxAttempts  int             `json:"max_attempts"`
	FinalError   string          `json:"final_error"`
	MovedBy      string          `json:"moved_by"`
	MovedAt      time.Time       `json:"moved_at"`
	RedrivenAt   *time.Time      `json:"redriven_at"` // nil: it was not redriven
	RedrivenBy   *string         `json:"redriven_by"`
	Job          json.RawMessage `json:"job,omitempty"` // the whole queue row, from ListWithJobs alone
}

// listed is a row of sqlList.
type listed struct {
	Letter

	Document *string // the job, when it was asked for
	Instant  string
}

// letter is the letter with its job, if that was asked for. A column of the type
// text may hold what is no JSON; it is then shown as a string, so that one letter
// does not spoil the page.
func (l listed) letter() Letter {
	letter := l.inUTC()
	if l.Document != nil {
		letter.Job = json.RawMessage(*l.Document)
		if !json.Valid(letter.Job) {
			letter.Job, _ = json.Marshal(*l.Document) // a text cannot fail
		}
	}
	return letter
}

// List reads the letters that a filter lets through, oldest first, at most limit.
// What the jobs held is not read; see [ListWithJobs].
//
// It is one read-only transaction, which locks no row and runs on a hot standby.
// The role needs SELECT on the columns that [Letter] shows. Returns [ErrLimit],
// [ErrFilter] or [ErrNegative] for an invalid argument, and [ErrID] for an id that is
// not of the key's type.
func List(ctx context.Context, db DB, store Store, filter Filter, limit int) (*Page, error) {
	return list(ctx, db, store, filter, limit, "null::text")
}

// ListWithJobs is List with the whole queue row of each job as it stood when it
// died, payload and all. The letters' column job may be jsonb, json or text; what
// a text holds that is no JSON is shown as a JSON string.
func ListWithJobs(ctx context.Context, db DB, store Store, filter Filter, limit int) (*Page, error) {
	return list(ctx, db, store, filter, limit, "d.job::text")
}

func list(ctx context.Context, db DB, store Store, filter Filter, limit int, job string) (*Page, error) {
	t, err := store.target(db)
	aged := t.checkAged(filter.OlderThan, filter.YoungerThan)
	if err := errors.Join(err, aged, filter.validate(), checkLimit(limit)); err != nil {
		return nil, err
	}
	w := &where{args: []any{int64(limit)}, inPlace: t.inPlace}
	filter.conditions(w)
	sql := t.in(sqlList, "{job}", job, "{first}", firstInstant, "{last}", lastInstant, "{and}", w.sql.String())

	options := pgtx.ReadCommitted
	options.AccessMode = pgx.ReadOnly
	tx, err := pgtx.Start(ctx, db, options)
	if err != nil {
		return nil, wrap("begin", err)
	}
	defer tx.Close(ctx)
	tx.Setting(t.lockTimeout.queue)
	page := &Page{Limit: limit}
	if err := page.read(ctx, tx, t, sql, w.args); err != nil {
		return nil, filter.wrap("list", err)
	}
	return page, nil
}

func (p *Page) read(ctx context.Context, tx *pgtx.Tx, t target, sql string, args []any) error {
	var rows []listed
	batch := tx.Batch()
	t.queueCheckMovedAt(batch)
	queueNow(batch, &p.EvaluatedAt)
	batch.Queue(sql, args...).Query(func(r pgx.Rows) error { return pgxscan.ScanAll(&rows, r) })
	if err := tx.Send(ctx, batch); err != nil {
		return err
	}
	p.Letters = make([]Letter, len(rows))
	for i, row := range rows {
		p.Letters[i] = row.letter()
	}
	if len(rows) == p.Limit {
		last := rows[len(rows)-1]
		p.Next = string(cursorAt(last.Instant, last.DeadLetterID))
	}
	return nil
}

// queueNow queues a look at the clock that decides, the database's at the start
// of the transaction.
func queueNow(b *pgx.Batch, now *time.Time) {
	b.Queue("select now()").QueryRow(func(row pgx.Row) error {
		err := row.Scan(now)
		*now = now.UTC()
		return err
	})
}

func (l Letter) inUTC() Letter {
	l.MovedAt = l.MovedAt.UTC()
	if l.RedrivenAt != nil {
		at := l.RedrivenAt.UTC()
		l.RedrivenAt = &at
	}
	return l
}

// MarshalJSON writes letters as a list, also when there are none.
func (p Page) MarshalJSON() ([]byte, error) {
	type plain Page
	p.EvaluatedAt = p.EvaluatedAt.UTC()
	p.Letters = orEmpty(p.Letters)
	return json.Marshal(plain(p))
}

// MarshalJSON writes the times in UTC.
func (l Letter) MarshalJSON() ([]byte, error) {
	type plain Letter
	return json.Marshal(plain(l.inUTC()))
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// sqlList reads a page of letters, oldest first. It locks nothing. A moved_at or
// redriven_at that RFC 3339 has no form for is shown as the nearest that it has.
//
//	$1 limit   bigint
//	$2 filter
const sqlList = `-- deadletter.list
select
  d.dead_letter_id::text as dead_letter_id,
  d.job_id::text as job_id,
  coalesce(d.job_kind::text, '') as job_kind,
  coalesce(d.attempts, 0)::bigint as attempts,
  coalesce(d.max_attempts, 0)::bigint as max_attempts,
  coalesce(d.final_error::text, '') as final_error,
  coalesce(d.moved_by::text, '') as moved_by,
  least(greatest(d.moved_at, {first}), {last}) as moved_at,
  case when d.redriven_at is not null then least(greatest(d.redriven_at, {first}), {last}) end as redriven_at,
  d.redriven_by::text as redriven_by,
  {job} as document,
  to_jsonb(d.moved_at) #>> '{}' as instant
from {dead_letter} d
where true{and}
order by d.moved_at, d.dead_letter_id
limit $1::bigint`

// The first and the last instant that RFC 3339 has a form for.
const (
	firstInstant = "timestamptz '0001-01-01 00:00:00Z'"
	lastInstant  = "timestamptz '9999-12-31 23:59:59.999999Z'"
)
