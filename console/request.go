package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// request is one request, once it is known who asks and of which database.
type request struct {
	*http.Request
	who caller
	db  *database
}

// route is a handler, and the level that it takes.
type route struct {
	needs  Level
	handle func(*request) (*answer, error)
}

// answer is what a handler found or did.
type answer struct {
	page    string   // the template
	title   string   // of the page
	data    any      // what the template shows
	value   any      // the JSON; nil: data
	live    bool     // the page refreshes by itself
	goTo    string   // instead of a page: where the browser goes, relative to the request
	trouble *trouble // what keeps the page from being fresh
}

// failure is an answer that is no page.
type failure struct {
	status int
	Text   string // a sentence or more, for people
	cause  error  // for the log

	trouble *trouble // since when, if reads have failed before
}

func (f *failure) Error() string {
	if f.cause != nil {
		return f.Text + " " + f.cause.Error()
	}
	return f.Text
}

func (f *failure) Unwrap() error { return f.cause }

// badRequest is the answer to what a form or an address should not hold.
func badRequest(text string) error {
	return &failure{status: http.StatusBadRequest, Text: text}
}

func notFound(text string) *failure { return &failure{status: http.StatusNotFound, Text: text} }

// actTimeout bounds a change that somebody asks for.
const actTimeout = 5 * time.Minute

// handle checks who asks before anything else happens.
func (c *console) handle(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		db := c.byName[r.PathValue("db")]
		who, err := c.caller(r)
		if err != nil {
			c.answerFailure(w, r, who, nil, asFailure(err))
			return
		}
		if refused := who.refusal(rt.needs, db); refused != nil {
			c.answerFailure(w, r, who, nil, refused)
			return
		}
		if db == nil && r.PathValue("db") != "" {
			c.answerFailure(w, r, who, nil, notFound("There is no such database here."))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), actTimeout)
		defer cancel()
		rq := &request{Request: r.WithContext(ctx), who: who, db: db}
		got, err := rt.handle(rq)
		if err != nil {
			c.answerFailure(w, r, who, db, asFailure(err))
			return
		}
		if rt.needs > LevelLook {
			c.log.Info("console acted", slog.String("actor", who.Actor),
				slog.String("database", db.Name()), slog.String("path", r.URL.Path))
		}
		c.answer(w, rq, got)
	})
}

// asFailure says what people read of an error.
func asFailure(err error) *failure {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, errNobody):
		return &failure{status: http.StatusUnauthorized, Text: "The console does not know who you are.", cause: err}
	}
	status, text := explain(err)
	return &failure{status: status, Text: text, cause: err}
}

// home goes to the overview of the database that is asked for, or of the first one.
func (c *console) home(rq *request) (*answer, error) {
	db := rq.db
	if db == nil {
		db = c.databases[0]
	}
	switch {
	case strings.HasSuffix(rq.URL.Path, "/") && rq.db != nil:
		return &answer{goTo: "overview"}, nil
	default:
		return &answer{goTo: db.Name() + "/overview"}, nil
	}
}

// unknown answers every other path, and methods that a path does not take.
func (c *console) unknown(rq *request) (*answer, error) {
	if rq.Method != http.MethodGet && rq.Method != http.MethodHead && rq.Method != http.MethodPost {
		return nil, &failure{status: http.StatusMethodNotAllowed, Text: "The console takes GET and POST alone."}
	}
	return nil, notFound("There is no such page here.")
}
