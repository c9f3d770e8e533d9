package reaper

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// write is what one act of the library's puts into a row.
type write struct {
	act      string // as in "every reset fails"
	severity string // of what makes it fail; empty: an error
	values   []value
}

// value is what a write puts into a column. Of some it is known, so that the
// column's constraints can be tried with it.
type value struct {
	column string
	kind   valueKind
	text   string // of a known one
}

type valueKind int

const (
	unknown valueKind = iota // one that differs from row to row
	null
	known // the text
	actorName
)

// actorLength is how many characters Verify wants room for where the name of an
// actor is stored. Nobody bounds an actor; 63 is the longest label of a host's
// name, and the longest name of a role.
const actorLength = 63

// some are values that differ from row to row.
func some(columns ...string) []value {
	values := make([]value, len(columns))
	for i, column := range columns {
		values[i] = value{column: column}
	}
	return values
}

// value returns what the write puts into a column.
func (w write) value(column string) (value, bool) {
	i := slices.IndexFunc(w.values, func(x value) bool { return x.column == column })
	if i < 0 {
		return value{}, false
	}
	return w.values[i], true
}

// writes looks whether the columns of a table take what is written into them.
func (v *verifier) writes(ctx context.Context, t *catalog.Table, object string, writes []write) error {
	for i := range t.Columns {
		column := &t.Columns[i]
		for _, look := range []func(*catalog.Table, *catalog.Column, string, []write) *Problem{
			generated, required, tooShort,
		} {
			if p := look(t, column, object, writes); p != nil {
				v.add(*p)
			}
		}
	}
	return v.checks(ctx, t, object, writes)
}

// generated reports a column that is written and only the server can fill.
func generated(_ *catalog.Table, column *catalog.Column, object string, writes []write) *Problem {
	quoted := pgx.Identifier{column.Name}.Sanitize()
	i := slices.IndexFunc(writes, func(w write) bool { _, ok := w.value(column.Name); return ok })
	if i < 0 || column.Generated == "" && !column.Identity {
		return nil
	}
	p := &Problem{
		Code: CodeColumnGenerated, Severity: writes[i].severity, Object: object + "." + quoted,
		Message: fmt.Sprintf("The column is generated always, and a %[1]s writes it: every %[1]s fails.",
			writes[i].act),
	}
	switch {
	case column.Identity:
		p.Fix = fmt.Sprintf("alter table %s alter column %s drop identity", object, quoted)
	case column.Generated == "s":
		p.Fix = fmt.Sprintf("alter table %s alter column %s drop expression", object, quoted)
	default: // a virtual one has nothing stored to keep
		p.Fix = fmt.Sprintf("alter table %[1]s drop column %[2]s;\nalter table %[1]s add column %[2]s %[3]s",
			object, quoted, column.TypeSQL)
	}
	return p
}

// required reports a column that must not be NULL and is made NULL.
func required(_ *catalog.Table, column *catalog.Column, object string, writes []write) *Problem {
	quoted := pgx.Identifier{column.Name}.Sanitize()
	i := slices.IndexFunc(writes, func(w write) bool { x, ok := w.value(column.Name); return ok && x.kind == null })
	if i < 0 || !column.NotNull {
		return nil
	}
	p := &Problem{
		Code: CodeColumnRequired, Severity: writes[i].severity, Object: object + "." + quoted,
		Message: fmt.Sprintf("The column must not be NULL, and a %[1]s makes it NULL: every %[1]s fails.",
			writes[i].act),
	}
	switch {
	case column.Primary:
		p.Message += " It is part of the primary key, which needs other columns."
	case column.NotNullItself:
		p.Fix = fmt.Sprintf("alter table %s alter column %s drop not null", object, quoted)
	default:
		p.Message += " Its domain says so."
		p.Fix = retype(object, quoted, column.Base)
	}
	return p
}

// tooShort reports a column that has no room for the longest text written to it.
func tooShort(t *catalog.Table, column *catalog.Column, object string, writes []write) *Problem {
	if column.Length == 0 {
		return nil
	}
	quoted := pgx.Identifier{column.Name}.Sanitize()
	for _, w := range writes {
		x, _ := w.value(column.Name)
		p := &Problem{
			Code: CodeColumnLength, Severity: w.severity, Object: object + "." + quoted,
			Fix: retype(object, quoted, "text"),
		}
		if slices.Contains(t.Partition, column.Name) {
			p.Fix = "" // the partition key's type cannot be changed
		}
		switch n := utf8.RuneCountInString(x.text); {
		case x.kind == known && n > column.Length:
			p.Message = fmt.Sprintf("The column holds %d characters, and %q has %d: every %s fails.",
				column.Length, x.text, n, w.act)
			return p
		case x.kind == actorName && column.Length < actorLength:
			p.Severity = SeverityWarning
			p.Message = fmt.Sprintf("The column holds %d characters: with a longer name of the actor every %s fails.",
				column.Length, w.act)
			return p
		}
	}
	return nil
}
