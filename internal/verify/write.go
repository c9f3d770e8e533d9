package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// write is what one act of the library's puts into a row.
type write struct {
	act      string         // as in "every reset fails"
	severity string         // of what makes it fail
	values   map[string]any // by column: a text, nil for NULL, or a value that is not known
}

// unknown is a value that is not known before it is written.
type unknown int

const (
	varies    unknown = iota // from row to row
	actorName                // bounded by nothing; see actorLength
)

// actorLength is how many characters Verify wants room for where the name of an
// actor is stored: 63 is the longest label of a host's name, and the longest name of
// a role.
const actorLength = 63

// writes checks whether the columns of a table take what is written into them, and
// whether its CHECK constraints do.
func (v *verifier) writes(ctx context.Context, t *catalog.Table, writes ...write) error {
	for i := range t.Columns {
		column := &t.Columns[i]
		for _, check := range []func(*catalog.Table, *catalog.Column, write, any) bool{
			v.generated, v.required, v.tooShort,
		} {
			for _, w := range writes {
				if value, ok := w.values[column.Name]; ok && check(t, column, w, value) {
					break // the others fail of the same
				}
			}
		}
	}
	for _, check := range t.Checks {
		for _, w := range writes {
			if found, err := v.excludes(ctx, t, check, w); err != nil {
				return err
			} else if found {
				break
			}
		}
	}
	return nil
}

// generated reports a column that is written and only the server can fill.
func (v *verifier) generated(t *catalog.Table, column *catalog.Column, w write, _ any) bool {
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
func (v *verifier) required(t *catalog.Table, column *catalog.Column, w write, value any) bool {
	if value != nil || !column.NotNull {
		return false
	}
	fix, more := nullable(t, column), ""
	switch {
	case column.Primary:
		fix, more = "", " It is part of the primary key, which needs other columns."
	case !column.NotNullItself:
		more = " Its domain says so."
	}
	v.add(w.severity, "column_required", at(t, column.Name), fix,
		"The column must not be NULL, and a %[1]s makes it NULL: every %[1]s fails.%[2]s", w.act, more)
	return true
}

// tooShort reports a column that has no room for the longest text written to it.
func (v *verifier) tooShort(t *catalog.Table, column *catalog.Column, w write, value any) bool {
	fix := retype(t, column.Name, "text")
	if slices.Contains(t.Partition, column.Name) {
		fix = "" // the partition key's type cannot be changed
	}
	text, _ := value.(string)
	switch n := utf8.RuneCountInString(text); {
	case column.Length == 0:
	case n > column.Length:
		v.add(w.severity, "column_length", at(t, column.Name), fix,
			"The column holds %d characters, and %q has %d: every %s fails.", column.Length, text, n, w.act)
		return true
	case value == actorName && column.Length < actorLength:
		v.warn("column_length", at(t, column.Name), fix,
			"The column holds %d characters: with a longer name of the actor every %s fails.", column.Length, w.act)
		return true
	}
	return false
}

// excludes reports a CHECK that rejects a write, if it is about columns alone of
// which it is known what is written. What it should allow is not for the library to
// say, so the fix drops it.
func (v *verifier) excludes(ctx context.Context, t *catalog.Table, check catalog.Check, w write) (bool, error) {
	row, values, known := rowOf(t, check, w)
	if !known {
		return false, nil
	}
	holds, err := v.holds(ctx, check.Expression, row)
	if err != nil || holds {
		return false, err
	}
	object, what := t.SQL, "table"
	if check.Domain != "" {
		object, what = check.Domain, "domain"
	}
	v.add(w.severity, "check_excludes_state", object,
		fmt.Sprintf("alter %s %s drop constraint %s", what, object, check.Name),
		"The CHECK %s rejects what a %s writes (%s): every %[2]s fails. "+
			"The fix drops it. Add one that allows these values.", check.Name, w.act, values)
	return true, nil
}

// rowOf is a row with the written values of a CHECK's columns, as a subquery and as
// people read it, if all of them are known.
func rowOf(t *catalog.Table, check catalog.Check, w write) (row, values string, known bool) {
	literals, texts := make([]string, len(check.Columns)), make([]string, len(check.Columns))
	for i, name := range check.Columns {
		value, written := w.values[name]
		text, isText := value.(string)
		literal := pgtext.Literal(text)
		texts[i] = fmt.Sprintf("%s %q", name, text)
		if written && value == nil {
			literal, texts[i] = "null", name+" NULL"
		} else if !isText {
			return "", "", false
		}
		as := name
		if check.Domain != "" {
			as = "value"
		}
		literals[i] = fmt.Sprintf("%s::%s as %s", literal, t.Column(name).Base, quote(as))
	}
	return "select " + strings.Join(literals, ", "), strings.Join(texts, ", "), true
}

// holds has the server evaluate a condition over made-up rows. It is a user's: a
// CHECK that is NULL holds, and one that cannot be evaluated so is not known to fail.
func (v *verifier) holds(ctx context.Context, condition, rows string, args ...any) (holds bool, err error) {
	err = v.try(ctx, func(tx pgx.Tx) error {
		sql := "-- verify.holds\nselect coalesce(bool_and(" + condition + "), true)\nfrom (" + rows + ") q"
		return tx.QueryRow(ctx, sql, args...).Scan(&holds)
	})
	if pgtx.Code(err) != "" && ctx.Err() == nil {
		return true, nil
	}
	return holds, err
}
