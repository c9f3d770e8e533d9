package verify

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// write is what one act of the library's puts into a row.
type write struct {
	act      string           // as in "every reset fails"
	severity string           // of what makes it fail
	values   map[string]value // by column
}

// value is what a write puts into a column. Of some it is known, so that the
// column's constraints can be tried with it.
type value struct {
	kind kind
	text string // of a known one
}

type kind int

const (
	varies kind = iota // from row to row
	null
	known // the text
	actorName
)

// actorLength is how many characters Verify wants room for where the name of an
// actor is stored. Nobody bounds an actor; 63 is the longest label of a host's
// name, and the longest name of a role.
const actorLength = 63

// writes looks whether the columns of a table take what is written into them.
func (v *verifier) writes(ctx context.Context, t *catalog.Table, writes ...write) error {
	for i := range t.Columns {
		column := &t.Columns[i]
		for _, look := range []func(*catalog.Table, *catalog.Column, write, value) bool{
			v.generated, v.required, v.tooShort,
		} {
			for _, w := range writes {
				if x, ok := w.values[column.Name]; ok && look(t, column, w, x) {
					break // the others fail of the same
				}
			}
		}
	}
	return v.checks(ctx, t, writes)
}

// generated reports a column that is written and only the server can fill.
func (v *verifier) generated(t *catalog.Table, column *catalog.Column, w write, _ value) bool {
	var fix string
	switch {
	case column.Identity:
		fix = alter(t, column.Name, "drop identity")
	case column.Generated == "s":
		fix = alter(t, column.Name, "drop expression")
	case column.Generated != "": // a virtual one has nothing stored to keep
		fix = fmt.Sprintf("alter table %[1]s drop column %[2]s;\nalter table %[1]s add column %[2]s %[3]s",
			t.SQL, quote(column.Name), column.TypeSQL)
	default:
		return false
	}
	v.add(w.severity, "column_generated", at(t, column.Name), fix,
		"The column is generated always, and a %[1]s writes it: every %[1]s fails.", w.act)
	return true
}

// required reports a column that must not be NULL and is made NULL.
func (v *verifier) required(t *catalog.Table, column *catalog.Column, w write, x value) bool {
	if x.kind != null || !column.NotNull {
		return false
	}
	fix, more := alter(t, column.Name, "drop not null"), ""
	switch {
	case column.Primary:
		fix, more = "", " It is part of the primary key, which needs other columns."
	case !column.NotNullItself:
		fix, more = retype(t, column.Name, column.Base), " Its domain says so."
	}
	v.add(w.severity, "column_required", at(t, column.Name), fix,
		"The column must not be NULL, and a %[1]s makes it NULL: every %[1]s fails.%[2]s", w.act, more)
	return true
}

// tooShort reports a column that has no room for the longest text written to it.
func (v *verifier) tooShort(t *catalog.Table, column *catalog.Column, w write, x value) bool {
	if column.Length == 0 {
		return false
	}
	fix := retype(t, column.Name, "text")
	if slices.Contains(t.Partition, column.Name) {
		fix = "" // the partition key's type cannot be changed
	}
	switch n := utf8.RuneCountInString(x.text); {
	case x.kind == known && n > column.Length:
		v.add(w.severity, "column_length", at(t, column.Name), fix,
			"The column holds %d characters, and %q has %d: every %s fails.", column.Length, x.text, n, w.act)
		return true
	case x.kind == actorName && column.Length < actorLength:
		v.warn("column_length", at(t, column.Name), fix,
			"The column holds %d characters: with a longer name of the actor every %s fails.", column.Length, w.act)
		return true
	}
	return false
}
