package demo

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/examples/worker/work"
	"github.com/lease-governance/leasereaper/reaper"
)

// event is what the witness wrote of one change.
type event struct {
	Seq      int64
	JobID    string
	JobKind  string
	Became   string
	Attempts int
	Reason   string
	Owner    string // without the claim's part
	Outcome  string
	By       string
}

const sqlEvents = `-- demo.events
select seq, job_id::text, job_kind, became, attempts, reason, split_part(owner, '/', 1) as owner, outcome, by
from demo_history
order by seq`

func (db *database) events(ctx context.Context) ([]event, error) {
	rows, _ := db.Pool.Query(ctx, sqlEvents) // collecting gives the error
	return pgx.CollectRows(rows, pgx.RowToStructByName[event])
}

// line tells an event, and nothing of a job that goes its usual way.
func (e event) line() string {
	job := label(e.JobKind, e.JobID)
	switch {
	case e.Outcome == reaper.ActionReset:
		return fmt.Sprintf("%s reaps %s, which %s left behind: try %d is due soon", e.By, job, e.Owner, e.Attempts+1)
	case e.Outcome == reaper.ActionMoved:
		return fmt.Sprintf("%s reaps %s, which %s left behind: no attempt is left, a dead letter", e.By, job, e.Owner)
	case e.Outcome == string(work.Retried):
		return fmt.Sprintf("%s fails at %s: %s", e.By, job, e.Reason)
	case e.Outcome == string(work.Buried):
		return fmt.Sprintf("%s fails at %s for the last time: a dead letter", e.By, job)
	case e.Outcome == string(work.GivenBack):
		return fmt.Sprintf("%s gives %s back", e.By, job)
	case e.Outcome == string(work.Succeeded) && e.Attempts > 0:
		return fmt.Sprintf("%s finishes %s, at try %d", e.By, job, e.Attempts+1)
	}
	return ""
}
