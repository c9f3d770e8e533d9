package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
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
	did     []any    // attributes of the log's record of a change
}

// failure is an answer that is no page.
type failure struct {
	status int
	Text   string // a sentence or more, for people
	cause  error  // for the log

	trouble *trouble // since when, if reads have failed before
	allow   string   // the methods that would do
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

// handle makes a handler of a route.
func (c *console) handle(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rq := &request{Request: r}
		got, err := c.run(rq, rt)
		if err != nil {
			c.answerFailure(w, rq, asFailure(err))
			return
		}
		c.answer(w, rq, got)
	})
}

// run checks who asks before anything else happens. It survives a function of the
// configuration that panics.
func (c *console) run(rq *request, rt route) (got *answer, err error) {
	defer func() { err = withPanic(err, recover()) }()
	if rq.who, err = c.caller(rq.Request); err != nil {
		return nil, err
	}
	db := c.listing.now(rq.Context()).byName[rq.PathValue("db")]
	if refused := rq.who.refusal(rt.needs, db); refused != nil {
		return nil, refused
	}
	if rq.db = db; db == nil && rq.PathValue("db") != "" {
		return nil, notFound("There is no such database here.")
	}
	ctx, cancel := context.WithTimeout(rq.Context(), actTimeout)
	defer cancel()
	rq.Request = rq.WithContext(ctx)
	if rt.needs > LevelLook {
		return c.act(rq, rt)
	}
	return rt.handle(rq)
}

// act has a change made. Whatever comes of it, what was read before is old.
func (c *console) act(rq *request, rt route) (*answer, error) {
	if err := rq.parse(); err != nil {
		return nil, err
	}
	defer rq.db.expire()
	got, err := rt.handle(rq)
	if err != nil {
		return nil, err
	}
	c.log.Info("console acted", append([]any{
		slog.String("actor", rq.who.Actor), slog.String("database", rq.db.Name()), slog.String("path", rq.URL.Path),
	}, got.did...)...)
	return got, nil
}

// parse reads the form of a POST. A form that is too large is not read to its end.
func (rq *request) parse() error {
	var large *http.MaxBytesError
	switch err := rq.ParseForm(); {
	case errors.As(err, &large):
		return &failure{status: http.StatusRequestEntityTooLarge, Text: "The form is too large. Nothing was changed."}
	case err != nil:
		return badRequest("The form cannot be read. Nothing was changed.")
	}
	return nil
}

// withPanic is err, or an error of what recover has returned.
func withPanic(err error, value any) error {
	switch value {
	case nil:
		return err
	case http.ErrAbortHandler: // for the server
		panic(value)
	}
	return fmt.Errorf("%w: %v\n%s", errPanicked, value, debug.Stack())
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
	if db != nil && strings.HasSuffix(rq.URL.Path, "/") {
		return &answer{goTo: "overview"}, nil
	}
	if all := c.listing.last().list; db == nil && len(all) > 0 {
		db = all[0]
	}
	if db == nil {
		return nil, notFound("There is no database to show.")
	}
	return &answer{goTo: db.Name() + "/overview"}, nil
}

// missing answers a path that nothing is at.
func (*console) missing(*request) (*answer, error) {
	return nil, notFound("There is no such page here.")
}

// unknown answers every other path, and methods that a path does not take.
func (c *console) unknown(rq *request) (*answer, error) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := rq.Clone(rq.Context())
		other.Method = method
		if _, pattern := c.mux.Handler(other); strings.HasPrefix(pattern, method+" ") {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return c.missing(rq)
	}
	return nil, &failure{
		status: http.StatusMethodNotAllowed, allow: strings.Join(allowed, ", "),
		Text: "This address takes " + strings.Join(allowed, " and ") + " alone. Nothing was changed.",
	}
}
