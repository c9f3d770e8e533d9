package deadletter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// What a filter may ask of a letter's status.
const (
	StatusAny        = ""
	StatusUnredriven = "unredriven"
	StatusRedriven   = "redriven"
)

// Filter says which letters are meant. Its zero value means all of them. A nil list
// does not filter; an empty list that is not nil lets no letter through.
type Filter struct {
	// IDs are keys of letters, in their text form.
	IDs []string

	// JobIDs are keys of the queue, in their text form.
	JobIDs []string

	// Kinds are the jobs' kinds, spelled just so.
	Kinds []string

	// ErrorContains is a part of the final error, upper and lower case told apart.
	ErrorContains string

	// OlderThan and YoungerThan are ages: how long ago a letter was moved, by the
	// database's clock, in whole microseconds. 0 does not filter.
	OlderThan, YoungerThan time.Duration

	// Status is StatusAny, StatusUnredriven or StatusRedriven. [Redrive] takes
	// unredriven letters alone.
	Status string

	// After is the Next of a page or a redrive: only letters behind it, in the order
	// of moved_at, then of dead_letter_id. Empty: from the oldest on.
	After string
}

func (f Filter) validate() error {
	faults := []error{checkAge("OlderThan", f.OlderThan), checkAge("YoungerThan", f.YoungerThan)}
	switch f.Status {
	case StatusAny, StatusUnredriven, StatusRedriven:
	default:
		faults = append(faults, fmt.Errorf("%w: Status %q", ErrFilter, f.Status))
	}
	if !isText(f.ErrorContains + strings.Join(f.Kinds, "")) {
		faults = append(faults, fmt.Errorf("%w: a kind or an error is not text", ErrFilter))
	}
	if !isText(strings.Join(f.IDs, "") + strings.Join(f.JobIDs, "")) {
		faults = append(faults, fmt.Errorf("%w: it is not text", ErrID))
	}
	return errors.Join(append(faults, cursor(f.After).validate())...)
}

// where collects the conditions of a statement behind those that it has itself,
// and all its arguments.
type where struct {
	sql  strings.Builder
	args []any

	inPlace bool // a letter whose time is -infinity has no age
}

// and adds a condition over the next arguments, a question mark for each.
func (w *where) and(condition string, args ...any) {
	w.sql.WriteString("\n  and ")
	for _, arg := range args {
		w.args = append(w.args, arg)
		condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(w.args)), 1)
	}
	w.sql.WriteString(condition)
}

// andAged leaves out letters in place that have no age.
func (w *where) andAged() {
	if w.inPlace {
		w.and("d.moved_at > '-infinity'")
	}
}

// conditions adds what f asks for, over a letter d. Texts are compared byte by
// byte: a collation that is not deterministic would find others equal, and has no
// search for a part.
func (f Filter) conditions(w *where) {
	f.identity(w)
	if f.Kinds != nil {
		w.and(`d.job_kind::text collate "C" = any(?::text[])`, array(f.Kinds))
	}
	if f.ErrorContains != "" {
		w.and(`strpos(d.final_error::text collate "C", ?::text) > 0`, f.ErrorContains)
	}
	if f.OlderThan > 0 {
		w.and("d.moved_at < now() - ?::bigint * interval '1 microsecond'", f.OlderThan.Microseconds())
		w.andAged()
	}
	if f.YoungerThan > 0 {
		w.and("d.moved_at >= now() - ?::bigint * interval '1 microsecond'", f.YoungerThan.Microseconds())
	}
	switch f.Status {
	case StatusUnredriven:
		w.and("d.redriven_at is null")
	case StatusRedriven:
		w.and("d.redriven_at is not null")
	}
}

// identity adds what f asks of the keys. They go to the server as texts, which
// knows their type.
func (f Filter) identity(w *where) {
	if f.IDs != nil {
		w.and("d.dead_letter_id = any(?)", array(f.IDs))
	}
	if f.JobIDs != nil {
		w.and("d.job_id = any(?)", array(f.JobIDs))
	}
	cursor(f.After).conditions(w)
}

// array is the text form of an array, for a parameter of any array type.
func array(list []string) string {
	return pgtext.Array(len(list), func(i int) string { return list[i] })
}

// cursor is a letter's place in the order of letters, as Filter.After takes it: its
// moved_at as the server writes it into JSON, whatever the session's settings, and its
// id. The empty cursor is before all.
type cursor string

// nextCursor is that of the last letter, when there are as many as were asked for and
// so may be more.
func nextCursor(letters []letterKey, limit int) cursor {
	if len(letters) < limit {
		return ""
	}
	last := letters[len(letters)-1]
	return cursorAt(last.Instant, last.DeadLetterID)
}

// cursorAt is the cursor of a letter.
func cursorAt(instant, id string) cursor { return cursor(instant + "/" + id) }

func (c cursor) validate() error {
	if c != "" && (!strings.Contains(string(c), "/") || !isText(string(c))) {
		return fmt.Errorf("%w: After %q", ErrFilter, c)
	}
	return nil
}

// conditions leaves the letters behind the cursor.
func (c cursor) conditions(w *where) {
	if c != "" {
		w.and("(d.moved_at, d.dead_letter_id) > (?::timestamptz, ?)", c.args()...)
	}
}

// args are the cursor as two parameters, NULL for the empty one.
func (c cursor) args() []any {
	if c == "" {
		return []any{nil, nil}
	}
	at, id, _ := strings.Cut(string(c), "/")
	return []any{at, id}
}
