package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// unfit are the rows that could not be made leased.
type unfit struct {
	states []string
	cause  error // of one of them; nil if triggers left them as they were
}

// makeStale returns a row that was made stale, or nil if there is none or it is unfit.
func (h *rehearsal) makeStale(ctx context.Context, a *attempt, exhausted bool, u *unfit) (*claimedJob, error) {
	row, job, err := h.writeStale(ctx, a, exhausted, u.states)
	switch {
	case job != nil:
		return job, nil
	case err != nil && !rejectsMakingStale(err):
		return nil, err
	case err != nil && (row.leased || row.id == "" || concernsTable(err)):
		a.tx.Close(ctx) // the savepoint is aborted
		return nil, h.rejected(ctx, "Making a real row stale", err)
	case row.leased || row.id == "":
		return nil, h.empty(ctx, u)
	}
	u.states, u.cause = append(u.states, row.state), cmp.Or(u.cause, err)
	return nil, nil //nolint:nilnil // an unfit row is an answer
}

// rehearsalRow is the row that is to be made stale; its id is empty if there is none.
type rehearsalRow struct {
	id, state string
	leased    bool
}

// writeStale finds a row and makes it stale.
func (h *rehearsal) writeStale(
	ctx context.Context, a *attempt, exhausted bool, except []string,
) (row rehearsalRow, job *claimedJob, err error) {
	states := pgtext.Array(len(except), func(i int) string { return except[i] })
	err = a.tx.QueryRow(ctx, h.r.sql.RehearseRow, h.r.scope, states).Scan(&row.id, &row.leased, &row.state)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, nil, nil
	}
	if err != nil {
		return row, nil, err
	}
	rows, err := a.tx.Query(ctx, h.r.sql.Rehearse, h.r.scope, exhausted, row.id)
	if err != nil {
		return row, nil, err
	}
	jobs, err := h.r.cfg.Queue.scanClaim(rows)
	if err != nil || len(jobs) == 0 {
		return row, nil, err
	}
	return row, jobs[0], nil
}

// empty reports that there was no row to rehearse with, and what keeps those that are there
// from being leased.
func (h *rehearsal) empty(ctx context.Context, u *unfit) error {
	if u.cause == nil {
		h.add(CodeRehearsalEmpty, SeverityWarning, "The queue has no row to rehearse with, or others "+
			"have locked all of them. Insert a job and rehearse again.")
		return nil
	}
	triggers, err := h.triggers(ctx)
	if err == nil {
		h.add(CodeRehearsalEmpty, SeverityWarning, fmt.Sprintf("The queue has no row to rehearse with: none is "+
			"leased, and none could be made leased: %s.%s Rehearse again when a job is leased.",
			causeOf(u.cause), triggers))
	}
	return err
}

// codeNotInState is what PostgreSQL raises for a published table without a replica
// identity, and for a view that cannot be written.
const codeNotInState = "55000"

// rejectsMakingStale reports whether an error says of the row, or of the role, that no
// job can be reset or moved either.
func rejectsMakingStale(err error) bool {
	return pgtx.IsServerError(err) && (!pgtx.MayConcernAll(err) || concernsTable(err))
}

// concernsTable reports whether an error says of the table, or of the role, that no row can
// be written.
func concernsTable(err error) bool {
	code := pgtx.Code(err)
	return code == codeNotInState || pgtx.Class(code) == "42" || pgtx.Class(code) == "0A"
}
