package console

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/reaper"
)

// History reads what was applied, newest first, at most limit entries. It is called
// in a read-only transaction.
type History interface {
	Read(ctx context.Context, tx pgx.Tx, limit int) ([]Entry, error)
}

// HistoryFunc makes a History of a function, for an audit table of another shape.
type HistoryFunc func(ctx context.Context, tx pgx.Tx, limit int) ([]Entry, error)

// Read calls f.
func (f HistoryFunc) Read(ctx context.Context, tx pgx.Tx, limit int) ([]Entry, error) {
	return f(ctx, tx, limit)
}

// Entry is one apply that changed something.
type Entry struct {
	AppliedAt       time.Time `json:"applied_at"`
	Actor           string    `json:"actor"`
	ResetCount      int       `json:"reset_count"`
	DeadLetterCount int       `json:"dead_letter_count"`
	FailedCount     int       `json:"failed_count"`
}

// Audit is an audit table: its method Write is for reaper.Config.OnApply, and it is a
// History. The role of the reaper needs INSERT on it, the console's SELECT.
//
//	create table reaper_audit (
//	    applied_at        timestamptz not null default now(),
//	    actor             text        not null,
//	    reset_count       integer     not null,
//	    dead_letter_count integer     not null,
//	    failed_count      integer     not null,
//	    result            jsonb       not null
//	);
//	create index on reaper_audit (applied_at);
type Audit struct {
	// Name is the table's name, with its schema or on the search path. Empty:
	// reaper_audit.
	Name pgx.Identifier
}

var (
	_ History = Audit{}
	_ History = HistoryFunc(nil)
)

func (a Audit) table() string {
	if len(a.Name) == 0 {
		return "reaper_audit"
	}
	return a.Name.Sanitize()
}

// sqlWriteAudit stores what an apply did.
//
//	$1 actor, $2 reset count, $3 dead letter count, $4 failed count, $5 result  jsonb
const sqlWriteAudit = `-- console.write_audit
insert into %s (actor, reset_count, dead_letter_count, failed_count, result)
values ($1, $2, $3, $4, $5)`

// Write stores a result in the apply's own transaction.
func (a Audit) Write(ctx context.Context, tx pgx.Tx, result *reaper.ApplyResult) error {
	document, err := json.Marshal(result)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, fmt.Sprintf(sqlWriteAudit, a.table()),
		result.Actor, result.ResetCount, result.DeadLetterCount, result.FailedCount, document)
	return err
}

// sqlReadAudit reads the newest entries. Served by an index on applied_at.
//
//	$1 limit  bigint
const sqlReadAudit = `-- console.read_audit
select a.applied_at, a.actor, a.reset_count, a.dead_letter_count, a.failed_count
from %s a
order by a.applied_at desc
limit $1::bigint`

// Read reads the newest entries.
func (a Audit) Read(ctx context.Context, tx pgx.Tx, limit int) ([]Entry, error) {
	rows, err := tx.Query(ctx, fmt.Sprintf(sqlReadAudit, a.table()), limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
}

// historyLimit is how many entries the page shows.
const historyLimit = 100

// historyPage is what the page of the history shows, and its JSON.
type historyPage struct {
	Entries []Entry `json:"entries"`
}

func (c *console) history(rq *request) (*answer, error) {
	if rq.db.cfg.History == nil {
		return nil, notFound("No audit table is configured for this database.")
	}
	page, trouble, err := share(rq, "history", func(ctx context.Context) (*historyPage, error) {
		page := &historyPage{}
		err := rq.db.look.read(ctx, func(tx pgx.Tx) (err error) {
			page.Entries, err = rq.db.cfg.History.Read(ctx, tx, historyLimit)
			return err
		})
		if page.Entries == nil {
			page.Entries = []Entry{}
		}
		return page, err
	})
	if err != nil {
		return nil, err
	}
	return &answer{page: "history", title: "History", data: page, live: true, trouble: trouble}, nil
}
