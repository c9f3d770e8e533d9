package console

import (
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/lease-governance/leasereaper/deadletter"
)

// purgeWord is typed to remove letters whose jobs nothing can bring back.
const purgeWord = "purge"

// purgeForm is how old the letters are that go, and whether unredriven ones go too. No
// letter in place was redriven.
func purgeForm(db *database, form url.Values) (older time.Duration, unredriven bool, err error) {
	if older, err = parseAge(form.Get("older")); err != nil {
		return 0, false, err
	}
	return older, db.InPlace() || form.Get("unredriven") == "yes", nil
}

// previewPurge shows which letters a purge would remove, and which it would keep.
func (c *console) previewPurge(rq *request) (*answer, error) {
	store, err := rq.store()
	if err != nil {
		return nil, err
	}
	older, unredriven, err := purgeForm(rq.db, rq.URL.Query())
	if err != nil {
		return nil, err
	}
	form, filter, err := filterOf(rq.URL.Query())
	if err != nil {
		return nil, err
	}
	filter.After, filter.OlderThan = "", older
	if filter.Status == deadletter.StatusAny && !unredriven {
		filter.Status = deadletter.StatusRedriven
	}
	page, err := deadletter.List(rq.Context(), rq.db.look, store, filter, previewLimit)
	if err != nil {
		return nil, err
	}
	p := previewOf(page, form)
	p.Unredriven = unredriven
	if !unredriven {
		p.keep(func(l deadletter.Letter) bool { return l.RedrivenAt == nil })
	}
	// Purge asks that a letter was redriven as long ago as it was moved.
	p.keep(func(l deadletter.Letter) bool {
		return l.RedrivenAt != nil && page.EvaluatedAt.Sub(*l.RedrivenAt) < older
	})
	return &answer{page: "purge", title: "Purge", data: p}, nil
}

// keep takes letters that a purge leaves alone out of the preview.
func (p *preview) keep(stays func(deadletter.Letter) bool) {
	before := len(p.Letters)
	p.Letters = slices.DeleteFunc(p.Letters, stays)
	p.Kept += before - len(p.Letters)
	p.count()
}

// purge removes exactly the letters that were shown.
func (c *console) purge(rq *request) (*answer, error) {
	store, ids, err := rq.chosen()
	if err != nil {
		return nil, err
	}
	older, unredriven, err := purgeForm(rq.db, rq.PostForm)
	if err != nil {
		return nil, err
	}
	if unredriven {
		if err := rq.typed(purgeWord); err != nil {
			return nil, err
		}
	}
	result, err := deadletter.Purge(rq.Context(), rq.db.cfg.Act, store, older, deadletter.PurgeConfig{
		Batch: previewLimit, Unredriven: unredriven, Filter: deadletter.Filter{IDs: ids},
	})
	if err != nil {
		return nil, partly(result, err)
	}
	did := []any{
		slog.Int("redriven", result.RedrivenCount), slog.Int("unredriven", result.UnredrivenCount),
		slog.Int("jobs", result.JobCount), slog.Int("rejected", result.FailedCount),
	}
	return &answer{page: "purged", title: "Purged", data: result, did: did}, nil
}

// partly says which letters were removed before an error: each batch is a transaction of
// its own.
func partly(result *deadletter.PurgeResult, err error) error {
	n := result.RedrivenCount + result.UnredrivenCount
	if n == 0 {
		return err
	}
	f := asFailure(err)
	return &failure{status: f.status, cause: err, Text: f.Text + " Before that, " +
		plural(n, "dead letter was", "dead letters were") + " removed."}
}
