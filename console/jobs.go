package console

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"slices"
	"strconv"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// overview shows all at once.
func (c *console) overview(rq *request) (*answer, error) {
	s, trouble, err := rq.db.snapshot(rq.Context())
	if err != nil {
		return nil, err
	}
	return &answer{page: "overview", title: "Overview", data: s, live: true, trouble: trouble}, nil
}

// jobsShown is how many jobs the page of jobs lists.
const jobsShown = 200

// jobs shows the dry run.
func (c *console) jobs(rq *request) (*answer, error) {
	s, trouble, err := rq.db.snapshot(rq.Context())
	if err != nil {
		return nil, err
	}
	shown := *s.Jobs
	shown.Limit = jobsShown
	shown.Jobs = shown.Jobs[:min(len(shown.Jobs), jobsShown)]
	return &answer{page: "jobs", title: "Jobs", data: &shown, live: true, trouble: trouble}, nil
}

// planDefault and planMost bound how many jobs a plan has.
const (
	planDefault = 100
	planMost    = 1000
)

// planPage is what the review of a plan shows.
type planPage struct {
	Plan  *reaper.DryRunResult
	Moves int
	Limit int
	Gates *gateState
	Text  string // the plan's JSON, which the form sends back
}

// plan makes a dry run to review. It is not refreshed: what is applied is what was
// shown.
func (c *console) plan(rq *request) (*answer, error) {
	limit, err := limitOf(rq.URL.Query().Get("limit"), planDefault, planMost)
	if err != nil {
		return nil, err
	}
	s, _, err := rq.db.snapshot(rq.Context())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(rq.Context(), readTimeout)
	defer cancel()
	dry, err := rq.db.looker.DryRun(ctx, limit)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(dry)
	if err != nil {
		return nil, err
	}
	page := planPage{Plan: dry, Limit: limit, Gates: s.Gates, Text: string(text)}
	for _, job := range dry.Jobs {
		if job.WouldAction == reaper.WouldMove {
			page.Moves++
		}
	}
	return &answer{page: "plan", title: "Plan", data: page, value: dry}, nil
}

func limitOf(text string, standard, most int) (int, error) {
	if text == "" {
		return standard, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		return 0, badRequest("The limit is a number from 1 to " + strconv.Itoa(most) + ".")
	}
	return limit, nil
}

// applied is what an apply of a plan did.
type applied struct {
	Result  *reaper.ApplyResult
	Planned int
	Kinds   map[string]string // by job
}

// applyPlan applies the plan that was reviewed, less the jobs that were taken out.
func (c *console) applyPlan(rq *request) (*answer, error) {
	plan, err := planOf(rq.PostForm)
	if err != nil {
		return nil, err
	}
	result, err := rq.db.actor.ApplyPlan(rq.Context(), rq.who.Actor, plan)
	if err != nil {
		return nil, err
	}
	if !c.cfg.ShowPayloads {
		rq.db.hideDocuments(result)
	}
	done := applied{Result: result, Planned: len(plan.Jobs), Kinds: map[string]string{}}
	for _, job := range plan.Jobs {
		done.Kinds[job.JobID] = job.JobKind
	}
	did := []any{
		slog.Int("planned", done.Planned), slog.Int("resets", result.ResetCount),
		slog.Int("moves", result.DeadLetterCount), slog.Int("skipped", len(result.Skipped)),
		slog.Int("rejected", result.FailedCount), slog.String("refused", result.Reason),
	}
	return &answer{page: "applied", title: "Applied", data: done, value: result, did: did}, nil
}

// planOf reads a plan from a form, with the jobs that are still ticked. Without the
// field that says that the form had boxes, all jobs of the plan are meant.
func planOf(form url.Values) (*reaper.DryRunResult, error) {
	plan := &reaper.DryRunResult{}
	if err := json.Unmarshal([]byte(form.Get("plan")), plan); err != nil {
		return nil, badRequest("The form holds no plan. Nothing was changed.")
	}
	if form.Has("ticked") {
		plan.Jobs = slices.DeleteFunc(plan.Jobs, func(job reaper.Job) bool {
			return !slices.Contains(form["job"], job.JobID)
		})
	}
	if len(plan.Jobs) > planMost {
		return nil, badRequest("The plan has too many jobs. Nothing was changed.")
	}
	if len(plan.Jobs) == 0 {
		return nil, badRequest("No job is left in the plan. Nothing was changed.")
	}
	return plan, nil
}

// hideDocuments leaves out what a mover of the service's own says of the letters, which
// may be the payload.
func (d *database) hideDocuments(result *reaper.ApplyResult) {
	switch d.cfg.Reaper.DeadLetter.(type) {
	case nil, deadletter.Table, deadletter.InPlace:
		return
	}
	for _, action := range result.Actions {
		if action.DeadLetter != nil {
			action.DeadLetter.Document = json.RawMessage(`{"payload_hidden":true}`)
		}
	}
}
