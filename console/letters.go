package console

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
)

// lettersShown is how many dead letters a page lists.
const lettersShown = 100

// filterForm is a filter as a form holds it.
type filterForm struct {
	Kind, Job, Error, Older, Younger, Status, After string
}

// filterOf reads a filter from an address or a form.
func filterOf(form url.Values) (filterForm, deadletter.Filter, error) {
	f := filterForm{
		Kind: strings.TrimSpace(form.Get("kind")), Job: strings.TrimSpace(form.Get("job")),
		Error: form.Get("error"), Older: form.Get("older"), Younger: form.Get("younger"),
		Status: form.Get("status"), After: form.Get("after"),
	}
	filter := deadletter.Filter{ErrorContains: f.Error, Status: f.Status, After: f.After}
	if f.Kind != "" {
		filter.Kinds = strings.Split(f.Kind, ",")
	}
	if f.Job != "" {
		filter.JobIDs = strings.Split(f.Job, ",")
	}
	var err error
	if filter.OlderThan, err = parseAge(f.Older); err != nil {
		return f, filter, err
	}
	filter.YoungerThan, err = parseAge(f.Younger)
	return f, filter, err
}

// Query is the filter as part of an address, for a page that begins behind after.
func (f filterForm) Query(after string) string {
	values := url.Values{}
	for name, value := range map[string]string{
		"kind": f.Kind, "job": f.Job, "error": f.Error, "older": f.Older, "younger": f.Younger,
		"status": f.Status, "after": after,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values.Encode()
}

// lettersPage is what the page of dead letters shows.
type lettersPage struct {
	Page   *deadletter.Page
	Filter filterForm
}

// store is the store of a request's database.
func (rq *request) store() (deadletter.Store, error) {
	if rq.db.store == nil {
		return deadletter.Store{}, notFound(
			"The dead letters of this database are not in a table that the console can read.")
	}
	return *rq.db.store, nil
}

func (c *console) letters(rq *request) (*answer, error) {
	store, err := rq.store()
	if err != nil {
		return nil, err
	}
	form, filter, err := filterOf(rq.URL.Query())
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (*deadletter.Page, error) {
		return deadletter.List(ctx, rq.db.look, store, filter, lettersShown)
	}
	page, trouble, err := share(rq, "letters?"+form.Query(form.After), read)
	if err != nil {
		return nil, err
	}
	return &answer{
		page: "letters", title: "Dead letters", data: lettersPage{page, form}, value: page,
		live: true, trouble: trouble,
	}, nil
}

// letterPage is one dead letter with its job.
type letterPage struct {
	Letter deadletter.Letter `json:"letter"`
	Job    *queueRow         `json:"queue_row"` // nil: it is gone
	Hidden bool              `json:"payload_hidden"`

	Payload string `json:"-"` // laid out for people
}

// queueRow is a job as it stands in the queue.
type queueRow struct {
	JobID       string  `json:"job_id"`
	Kind        string  `json:"job_kind"`
	State       string  `json:"state"`
	Attempts    *int64  `json:"attempts"`
	MaxAttempts *int64  `json:"max_attempts"`
	ScheduledAt *string `json:"scheduled_at"`
	LeaseOwner  *string `json:"lease_owner"`
	LeaseUntil  *string `json:"lease_until"`
	LastError   *string `json:"last_error"`
}

func (c *console) letter(rq *request) (*answer, error) {
	store, err := rq.store()
	if err != nil {
		return nil, err
	}
	id := rq.URL.Query().Get("id")
	page, trouble, err := share(rq, "letter?"+id, func(ctx context.Context) (*letterPage, error) {
		return c.readLetter(ctx, rq.db, store, id)
	})
	if err != nil {
		return nil, err
	}
	return &answer{page: "letter", title: "Dead letter", data: page, live: true, trouble: trouble}, nil
}

// readLetter reads the payload only if the configuration shows it.
func (c *console) readLetter(
	ctx context.Context, db *database, store deadletter.Store, id string,
) (*letterPage, error) {
	list := deadletter.List
	if c.cfg.ShowPayloads {
		list = deadletter.ListWithJobs
	}
	found, err := list(ctx, db.look, store, deadletter.Filter{IDs: []string{id}}, 1)
	if err != nil {
		return nil, err
	}
	if len(found.Letters) == 0 {
		where := ""
		if store.InPlace {
			where = ", or redriven"
		}
		return nil, notFound("There is no such dead letter. It may have been purged" + where + ".")
	}
	page := &letterPage{Letter: found.Letters[0], Hidden: true}
	c.redact(page)
	err = db.look.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, db.sql.job, page.Letter.JobID)
		if err != nil {
			return err
		}
		jobs, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[queueRow])
		if len(jobs) > 0 {
			page.Job = jobs[0]
			page.Job.ScheduledAt, page.Job.LeaseUntil = inUTC(page.Job.ScheduledAt), inUTC(page.Job.LeaseUntil)
		}
		return err
	})
	return page, err
}

// inUTC is a time as JSON has it, in UTC unless it is infinite.
func inUTC(text *string) *string {
	if text == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return text
	}
	utc := at.UTC().Format(time.RFC3339Nano)
	return &utc
}

// redact leaves of the payload what the configuration shows.
func (c *console) redact(page *letterPage) {
	job := page.Letter.Job
	if c.cfg.Redact != nil && job != nil {
		job = c.cfg.Redact(page.Letter.JobKind, job)
	}
	if !c.cfg.ShowPayloads || !json.Valid(job) {
		page.Letter.Job = nil
		return
	}
	page.Letter.Job, page.Hidden = job, false
	page.Payload = indent(job)
}
