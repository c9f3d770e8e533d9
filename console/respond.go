package console

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// view is what every template gets.
type view struct {
	Title     string
	Page      string // the template, which the menu marks
	Root      string // from this page to where the console is mounted, as in "../"
	Base      string // from this page to the pages of its database
	Databases []*database
	DB        *database
	Actor     string // who looks
	Level     Level

	JSON    string // the query of this page's address
	Live    bool
	Trouble *trouble
	Failure *failure
	Now     time.Time
	Data    any
}

// May reports whether the reader may act here; the server checks again.
func (v view) May() bool { return v.Level >= LevelAct && v.DB != nil && v.DB.acts() }

// MayOpen reports whether the reader may open gates here.
func (v view) MayOpen() bool { return v.May() && v.Level >= LevelGates }

// answer writes what a handler found.
func (c *console) answer(w http.ResponseWriter, rq *request, got *answer) {
	switch {
	case got.goTo != "":
		w.Header().Set("Location", got.goTo)
		w.WriteHeader(http.StatusSeeOther)
	case wantsJSON(rq.Request):
		c.answerJSON(w, rq, got)
	default:
		v := c.view(rq.Request, rq.who, rq.db)
		v.Title, v.Page, v.Live, v.Trouble, v.Data = got.title, got.page, got.live, got.trouble, got.data
		c.write(w, http.StatusOK, v)
	}
}

// answerJSON writes no old data: a program cannot see how old it is.
func (c *console) answerJSON(w http.ResponseWriter, rq *request, got *answer) {
	if got.trouble != nil {
		_ = writeJSON(w, got.trouble.status, got.trouble) // texts can be written
		return
	}
	value := got.value
	if value == nil {
		value = got.data
	}
	if err := writeJSON(w, http.StatusOK, value); err != nil {
		c.log.Error("console cannot write JSON", slog.String("path", rq.URL.Path), slog.String("error", err.Error()))
	}
}

func writeJSON(w http.ResponseWriter, status int, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error": "this cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the reader may have gone
	return err
}

// answerFailure writes an answer that is no page: a page that says so, or JSON.
func (c *console) answerFailure(w http.ResponseWriter, rq *request, f *failure) {
	r := rq.Request
	if f.cause != nil { // its text alone: a PgError has details, which may hold what a row holds
		c.log.Warn("console cannot answer", slog.String("actor", rq.who.Actor), slog.String("method", r.Method),
			slog.String("path", r.URL.Path), slog.Int("status", f.status), slog.String("error", f.cause.Error()))
	}
	if f.allow != "" {
		w.Header().Set("Allow", f.allow)
	}
	t := f.trouble
	if t == nil {
		t = &trouble{Text: f.Text, Since: time.Now()}
	}
	if wantsJSON(r) {
		_ = writeJSON(w, f.status, t) // texts can be written
		return
	}
	v := c.view(r, rq.who, rq.db)
	v.Title, v.Page, v.Failure, v.Trouble = http.StatusText(f.status), "failure", f, f.trouble
	v.Live = f.status >= http.StatusInternalServerError && r.Method == http.MethodGet
	c.write(w, f.status, v)
}

func (c *console) view(r *http.Request, who caller, db *database) view {
	depth := max(0, strings.Count(r.URL.EscapedPath(), "/")-1)
	v := view{Root: strings.Repeat("../", depth), Actor: who.Actor, Level: who.Level, DB: db, Now: time.Now().UTC()}
	if v.Root == "" {
		v.Root = "./"
	}
	if who.Level >= LevelLook {
		v.Databases = c.listing.last().list
	}
	if r.URL.RawQuery != "" {
		v.JSON = "?" + r.URL.RawQuery
	}
	if db != nil {
		v.Base = v.Root + db.Name() + "/"
	}
	return v
}

// write renders the whole page before it sends any of it.
func (c *console) write(w http.ResponseWriter, status int, v view) {
	var page bytes.Buffer
	if err := c.pages[v.Page].ExecuteTemplate(&page, "page", v); err != nil {
		c.log.Error("console cannot render a page", slog.String("page", v.Page), slog.String("error", err.Error()))
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // the reader may have gone
}
