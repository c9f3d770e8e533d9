package console

import (
	"context"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// previewLimit is how many dead letters one redrive or purge takes.
const previewLimit = 500

// preview is what a redrive or a purge would do.
type preview struct {
	Letters []deadletter.Letter `json:"letters"`
	Kinds   []letterTally       `json:"kinds"`
	Skips   []alive             `json:"skipped"` // of a redrive: whose job is in another state
	More    bool                `json:"more"`    // there are more such letters than one call takes

	Filter     filterForm `json:"-"`
	IDs        []string   `json:"-"`
	Unredriven bool       `json:"-"` // of a purge: also those
	Kept       int        `json:"-"` // of a purge: the unredriven letters among these, which stay
}

// letterTally counts letters of a kind.
type letterTally struct {
	Kind  string `json:"job_kind"`
	Count int    `json:"count"`
}

// alive is a letter whose job is not in the state of dead letters.
type alive struct {
	DeadLetterID string `json:"dead_letter_id"`
	JobID        string `json:"job_id"`
	State        string `json:"state"`
}

// previewRedrive shows which letters a redrive would take, and which it would skip.
func (c *console) previewRedrive(rq *request) (*answer, error) {
	store, err := rq.store()
	if err != nil {
		return nil, err
	}
	query := rq.URL.Query()
	form, filter, err := filterOf(query)
	if err != nil {
		return nil, err
	}
	filter.Status, filter.After = deadletter.StatusUnredriven, ""
	if ids := query["id"]; len(ids) > 0 {
		filter.IDs = ids
	}
	page, err := deadletter.List(rq.Context(), rq.db.look, store, filter, previewLimit)
	if err != nil {
		return nil, err
	}
	p := previewOf(page, form)
	if p.Skips, err = rq.db.alive(rq.Context(), p.IDs); err != nil {
		return nil, err
	}
	return &answer{page: "redrive", title: "Redrive", data: p}, nil
}

func previewOf(page *deadletter.Page, form filterForm) *preview {
	p := &preview{Letters: page.Letters, More: page.Next != "", Filter: form, Kinds: []letterTally{}, Skips: []alive{}}
	if p.Letters == nil {
		p.Letters = []deadletter.Letter{}
	}
	p.count()
	return p
}

// count fills in what follows from the letters.
func (p *preview) count() {
	p.IDs, p.Kinds = nil, []letterTally{}
	for _, letter := range p.Letters {
		p.IDs = append(p.IDs, letter.DeadLetterID)
		i := slices.IndexFunc(p.Kinds, func(t letterTally) bool { return t.Kind == letter.JobKind })
		if i < 0 {
			i = len(p.Kinds)
			p.Kinds = append(p.Kinds, letterTally{Kind: letter.JobKind})
		}
		p.Kinds[i].Count++
	}
	slices.SortStableFunc(p.Kinds, func(a, b letterTally) int { return b.Count - a.Count })
}

// alive reads whose jobs are not in the state of dead letters.
func (d *database) alive(ctx context.Context, ids []string) ([]alive, error) {
	list := []alive{}
	err := d.look.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, d.sql.states, pgtext.Array(len(ids), func(i int) string { return ids[i] }))
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[alive])
		return err
	})
	return list, err
}

// redrive sends back the jobs of exactly the letters that were shown.
func (c *console) redrive(rq *request) (*answer, error) {
	store, ids, err := rq.chosen()
	if err != nil {
		return nil, err
	}
	shown := deadletter.Filter{IDs: ids}
	result, err := deadletter.Redrive(rq.Context(), rq.db.cfg.Act, store, rq.who.Actor, shown, len(ids))
	if err != nil {
		return nil, err
	}
	did := []any{
		slog.Int("redriven", result.RedrivenCount), slog.Int("skipped", result.SkippedCount),
		slog.Int("rejected", result.FailedCount),
	}
	return &answer{page: "redriven", title: "Redriven", data: result, did: did}, nil
}

// chosen are the letters that a form names.
func (rq *request) chosen() (deadletter.Store, []string, error) {
	store, err := rq.store()
	if err != nil {
		return store, nil, err
	}
	ids := rq.PostForm["id"]
	switch {
	case len(ids) == 0:
		return store, nil, badRequest("No dead letter was chosen. Nothing was changed.")
	case len(ids) > previewLimit:
		return store, nil, badRequest("These are too many dead letters for one call.")
	}
	return store, ids, nil
}
