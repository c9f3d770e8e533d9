package reaper

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/stmt"
)

// Codes of what a rehearsal reports.
const (
	CodeRehearsalFailed = "rehearsal_failed" // a reset or a move of a real row was rejected
	CodeRehearsalEmpty  = "rehearsal_empty"  // there was no row to rehearse with
)

// sqlTriggers reads the names of a table's triggers that fire.
//
//	$1 schema  text, NULL for the search path
//	$2 table   text
const sqlTriggers = `-- reaper.triggers
select coalesce(string_agg(quote_ident(t.tgname), ', ' order by t.tgname), '')
from pg_trigger t
join pg_class c on c.oid = t.tgrelid
join pg_namespace n on n.oid = c.relnamespace
where not t.tgisinternal and t.tgenabled not in ('D', 'R')
  and c.relname = $2::text
  and case when $1::text is null then pg_table_is_visible(c.oid) else n.nspname = $1::text end`

// Rehearse resets and moves one real row in a transaction that it rolls back, and
// reports what rejected that: triggers, constraints and privileges show only so. The
// row is a leased one, made stale for the purpose. If none is leased, it is one of any
// other state that can be made leased, with an owner. The gates are not read, and
// deferred constraints are checked. Nothing is changed, but a mover of the caller's is
// called, and what it does outside of the transaction stays. To make a row stale it
// writes the column that a reap counts in, [Columns].LeaseOwner and
// [Columns].LeaseSeconds, which an apply may leave alone: the role needs UPDATE on them.
//
// A rejection is a problem with the code [CodeRehearsalFailed]; its message has the
// SQLSTATE and the constraint, trigger or column. A queue without a row that could be
// used is the warning [CodeRehearsalEmpty]; that a row in another state cannot be made
// leased says nothing about an apply. The error says that nothing could be rehearsed at
// all: a standby or a read-only connection is [ErrReadOnly].
func (r *Reaper) Rehearse(ctx context.Context) (*Report, error) {
	tx, err := pgtx.Open(ctx, r.db)
	if err != nil {
		return nil, fmt.Errorf("reaper: rehearse: %w", err)
	}
	defer tx.Close(ctx)
	h := &rehearsal{r: r, tx: tx, report: &Report{Problems: []Problem{}}}
	tx.Setting(r.queueLockTimeout)
	batch := tx.Batch()
	h.tables.Queue(batch, r.cfg.Queue.Name, r.letters)
	if err := tx.Send(ctx, batch); err != nil {
		return nil, fmt.Errorf("reaper: rehearse: %w", wrapReadOnly(err))
	}
	for _, exhausted := range []bool{false, true} {
		found, err := h.rehearse(ctx, exhausted)
		if err != nil {
			return nil, fmt.Errorf("reaper: rehearse: %w", wrapReadOnly(err))
		}
		if !found {
			break // the move needs the same row
		}
	}
	return h.report, nil
}

// rehearsal is the transaction of a Rehearse.
type rehearsal struct {
	r      *Reaper
	tx     *pgtx.Tx
	tables stmt.Tables
	report *Report
}

// rehearse resets or moves a row, one of each state until one can be made stale.
func (h *rehearsal) rehearse(ctx context.Context, exhausted bool) (found bool, err error) {
	for u := (&unfit{}); ; {
		tried := len(u.states)
		found, err = h.rehearseRow(ctx, exhausted, u)
		if err != nil || len(u.states) == tried {
			return found, err
		}
	}
}

// rehearseRow resets or moves a row in a savepoint, and reports what rejected it. It finds
// no row where there is none, or none can be made stale, which is reported too, or where
// the row is added to u.
func (h *rehearsal) rehearseRow(ctx context.Context, exhausted bool, u *unfit) (found bool, err error) {
	savepoint, err := pgtx.Open(ctx, h.tx.Tx)
	if err != nil {
		return false, err
	}
	defer savepoint.Close(ctx)
	a := &attempt{
		r: h.r, req: request{actor: "rehearsal", limit: 1},
		mode: modeIsolateConstraints, tx: savepoint, tables: h.tables,
	}
	job, err := h.makeStale(ctx, a, exhausted, u)
	if err != nil || job == nil {
		return false, err
	}
	job.exhausted = exhausted
	what, writer := "The reset of a real row", a.groupWriter(a.resetGroup)
	if exhausted {
		what, writer = "The move of a real row", a.groupWriter(a.moveGroup)
		writer.Again = unbump
	}
	var cause error
	writer.Reject = func(_ *claimedJob, err error) { cause = err }
	if err := writer.Write(ctx, []*claimedJob{job}); err != nil || cause == nil {
		return true, err
	}
	return true, h.rejected(ctx, what, cause)
}

// add adds a problem of the queue.
func (h *rehearsal) add(code, severity, message string) {
	h.report.Problems = append(h.report.Problems, Problem{
		Code: code, Severity: severity, Object: h.r.sql.Table, Message: message,
	})
}

// rejected reports what was rejected, and why.
func (h *rehearsal) rejected(ctx context.Context, what string, cause error) error {
	triggers, err := h.triggers(ctx)
	if err != nil {
		return err
	}
	h.add(CodeRehearsalFailed, SeverityError, fmt.Sprintf("%s was rejected: %s.%s", what, causeOf(cause), triggers))
	return nil
}

// causeOf is a cause with its names, as far as it may be shown.
func causeOf(cause error) string { return strings.Join(append(namesOf(cause), reasonOf(cause)), ", ") }

// namesOf are the SQLSTATE of a cause and the names that PostgreSQL gives with it.
func namesOf(cause error) []string {
	pgErr := pgtx.ServerError(cause)
	if pgErr == nil {
		return nil
	}
	names := []string{"SQLSTATE " + pgErr.Code}
	for _, named := range []struct{ what, name string }{
		{"constraint", pgErr.ConstraintName}, {"column", pgErr.ColumnName}, {"table", pgErr.TableName},
	} {
		if named.name != "" {
			names = append(names, named.what+" "+pgx.Identifier{named.name}.Sanitize())
		}
	}
	return names
}

// reasonOf is what may be shown of a cause: the message of a class that names no
// values, or the library's own.
func reasonOf(cause error) string {
	pgErr := pgtx.ServerError(cause)
	if pgErr == nil {
		return cause.Error()
	}
	class := pgtx.Class(pgErr.Code)
	if slices.Contains([]string{"0A", "23", "42", "44", "55"}, class) || pgErr.Code == "22001" { // it names the type
		return pgErr.Message
	}
	return "see the server's log for the message, which may hold values of the row"
}

// triggers is a sentence with the triggers on the queue and on the dead letters, or nothing.
func (h *rehearsal) triggers(ctx context.Context) (string, error) {
	var all []string
	for _, table := range []pgx.Identifier{h.r.cfg.Queue.Name, h.r.letters} {
		if table == nil {
			continue
		}
		var names string
		if err := h.tx.QueryRow(ctx, sqlTriggers, pgtext.Parts(table)...).Scan(&names); err != nil {
			return "", err
		}
		if names != "" {
			all = append(all, names)
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	return " Triggers on the tables: " + strings.Join(all, ", ") + ".", nil
}
