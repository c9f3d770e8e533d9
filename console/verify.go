package console

import (
	"context"

	"github.com/lease-governance/leasereaper/reaper"
)

// report is what Verify or a rehearsal found.
type report struct {
	Problems  []reaper.Problem
	Rehearsed bool
	Errors    int
}

func reportOf(found *reaper.Report, rehearsed bool) report {
	r := report{Problems: found.Problems, Rehearsed: rehearsed}
	for _, problem := range found.Problems {
		if problem.Severity == reaper.SeverityError {
			r.Errors++
		}
	}
	return r
}

// verify looks with the connection that would act, where there is one: its privileges
// are those that count.
func (c *console) verify(rq *request) (*answer, error) {
	r := rq.db.looker
	if rq.db.actor != nil {
		r = rq.db.actor
	}
	look := func(ctx context.Context) (*reaper.Report, error) { return r.Verify(ctx) }
	found, trouble, err := share(rq, "verify", look)
	if err != nil {
		return nil, err
	}
	return &answer{page: "verify", title: "Verify", data: reportOf(found, false), value: found, trouble: trouble}, nil
}

// rehearse resets and moves a real row, and rolls that back.
func (c *console) rehearse(rq *request) (*answer, error) {
	found, err := rq.db.actor.Rehearse(rq.Context())
	if err != nil {
		return nil, err
	}
	return &answer{page: "verify", title: "Rehearse", data: reportOf(found, true), value: found}, nil
}
