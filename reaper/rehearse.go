package reaper

import (
	"context"
	"fmt"
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

// sqlTriggers reads the names of a table's triggers.
//
//	$1 schema  text, NULL for the search path
//	$2 table   text
const sqlTriggers = `-- reaper.triggers
select coalesce(string_agg(quote_ident(t.tgname), ', ' order by t.tgname), '')
from pg_trigger t
join pg_class c on c.oid = t.tgrelid
join pg_namespace n on n.oid = c.relnamespace
where not t.tgisinternal and t.tgenabled <> 'D'
  and c.relname = $2::text
  and case when $1::text is null then pg_table_is_visible(c.oid) else n.nspname = $1::text end`

// Rehearse resets and moves one real row in a transaction that it rolls back, and
// reports what rejected that: triggers, constraints and privileges show only so. The
// row is any one of the queue's, made stale for the purpose; a leased one is
// preferred. The gates are not read, and deferred constraints are checked. Nothing is
// changed, but a mover of the caller's is called, and what it does outside of the
// transaction stays.
//
// A rejection is a problem with the code [CodeRehearsalFailed]; its message has the
// SQLSTATE and the constraint, trigger or column. A queue without a row that could be
// used is the warning [CodeRehearsalEmpty]. The error says that nothing could be
// rehearsed at all: a standby or a read-only connection is [ErrReadOnly].
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
		if err := h.rehearse(ctx, exhausted); err != nil {
			return nil, fmt.Errorf("reaper: rehearse: %w", wrapReadOnly(err))
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

// rehearse resets or moves a row in a savepoint, and reports what rejected it.
func (h *rehearsal) rehearse(ctx context.Context, exhausted bool) error {
	savepoint, err := pgtx.Open(ctx, h.tx.Tx)
	if err != nil {
		return err
	}
	defer savepoint.Close(ctx)
	a := &attempt{
		r: h.r, req: request{actor: "rehearsal", limit: 1},
		mode: modeIsolateConstraints, tx: savepoint, tables: h.tables,
	}
	job, err := h.makeStale(ctx, a)
	if err != nil || job == nil {
		return err
	}
	job.exhausted = exhausted
	what, writer := "reset", a.groups(a.resetGroup)
	if exhausted {
		what, writer = "move", a.groups(a.moveGroup)
		writer.Again = unbump
	}
	var cause error
	writer.Reject = func(_ *claimedJob, err error) { cause = err }
	if err := writer.Write(ctx, []*claimedJob{job}); err != nil {
		return err
	}
	return h.add(ctx, what, cause)
}

// makeStale returns a row that was made stale, or nil if there is none.
func (h *rehearsal) makeStale(ctx context.Context, a *attempt) (*claimedJob, error) {
	jobs, err := h.queryStale(ctx, a)
	switch {
	case rejectsMakingStale(err):
		a.tx.Close(ctx) // the savepoint is aborted
		if len(h.report.Problems) > 0 {
			return nil, nil //nolint:nilnil // said already
		}
		return nil, h.add(ctx, "making stale", err)
	case err != nil:
		return nil, err
	case len(jobs) > 0:
		return jobs[0], nil
	case len(h.report.Problems) == 0:
		h.report.Problems = append(h.report.Problems, Problem{
			Code: CodeRehearsalEmpty, Severity: SeverityWarning, Object: h.r.sql.Table,
			Message: "The queue has no row to rehearse with, or somebody has locked all of them. " +
				"Insert a job and rehearse again.",
		})
	}
	return nil, nil //nolint:nilnil // no row is an answer
}

func (h *rehearsal) queryStale(ctx context.Context, a *attempt) ([]*claimedJob, error) {
	rows, err := a.tx.Query(ctx, h.r.sql.Rehearse, h.r.scope)
	if err != nil {
		return nil, err
	}
	return h.r.cfg.Queue.scanClaim(rows)
}

// rejectsMakingStale reports whether an error says of the row, or of the role, that no
// job can be reset or moved either.
func rejectsMakingStale(err error) bool {
	return pgtx.IsServerError(err) && (!pgtx.MayConcernAll(err) || pgtx.Class(pgtx.Code(err)) == "42")
}

// add reports what rejected a row, if something did.
func (h *rehearsal) add(ctx context.Context, what string, cause error) error {
	if cause == nil {
		return nil
	}
	triggers, err := h.triggers(ctx)
	if err != nil {
		return err
	}
	message := fmt.Sprintf("The %s of a real row was rejected: %s.", what,
		strings.Join(append(namesOf(cause), reasonOf(cause)), ", "))
	if triggers != "" {
		message += " Triggers on the tables: " + triggers + "."
	}
	h.report.Problems = append(h.report.Problems, Problem{
		Code: CodeRehearsalFailed, Severity: SeverityError, Object: h.r.sql.Table, Message: message,
	})
	return nil
}

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
	switch pgtx.Class(pgErr.Code) {
	case "23", "42", "55":
		return pgErr.Message
	}
	return "see the server's log for the message, which may hold values of the row"
}

// triggers are the names of the triggers on the queue and on the dead letters.
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
	return strings.Join(all, ", "), nil
}
