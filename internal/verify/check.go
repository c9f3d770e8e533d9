package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// checks tries the CHECK constraints that are about columns alone of which it is
// known what is written. The server evaluates each over the values, as an update
// of the role's own would; no row is read.
func (v *verifier) checks(ctx context.Context, t *catalog.Table, writes []write) error {
	for _, check := range t.Checks {
		for _, w := range writes {
			row, ok := rowOf(t, check, w)
			if !ok {
				continue
			}
			holds, err := v.holds(ctx, check.Expression, row)
			if err != nil {
				return err
			}
			if !holds {
				v.excluded(t, check, w)
				break
			}
		}
	}
	return nil
}

// excluded reports a CHECK that rejects a write. What it should allow is not for
// the library to say, so the fix drops it.
func (v *verifier) excluded(t *catalog.Table, check catalog.Check, w write) {
	object, what := t.SQL, "table"
	if check.Domain != "" {
		object, what = check.Domain, "domain"
	}
	values := make([]string, len(check.Columns))
	for i, name := range check.Columns {
		values[i] = name + " NULL"
		if x := w.values[name]; x.kind == known {
			values[i] = fmt.Sprintf("%s %q", name, x.text)
		}
	}
	v.add(w.severity, "check_excludes_state", object,
		fmt.Sprintf("alter %s %s drop constraint %s", what, object, check.Name),
		"The CHECK %s rejects what a %s writes (%s): every %[2]s fails. "+
			"The fix drops it; make one again that allows these values.", check.Name, w.act, strings.Join(values, ", "))
}

// rowOf is a row with the written values of a CHECK's columns, as a subquery, or
// not ok where one of them is not known.
func rowOf(t *catalog.Table, check catalog.Check, w write) (row string, ok bool) {
	columns := make([]string, len(check.Columns))
	for i, name := range check.Columns {
		x, column, literal := w.values[name], t.Column(name), "null"
		if x.kind == known {
			var err error
			if literal, err = pgtext.Label(x.text); err != nil {
				return "", false
			}
		}
		if column == nil || x.kind != known && x.kind != null {
			return "", false
		}
		if check.Domain != "" {
			name = "value"
		}
		columns[i] = fmt.Sprintf("%s::%s as %s", literal, column.Base, quote(name))
	}
	return "select " + strings.Join(columns, ", "), true
}

// holds evaluates a condition over rows, in a savepoint: it is a user's, and may
// fail. A CHECK that is NULL holds, and one that cannot be evaluated so is not
// known to fail.
func (v *verifier) holds(ctx context.Context, condition, rows string) (holds bool, err error) {
	savepoint, err := v.tx.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer pgtx.Rollback(ctx, savepoint)
	err = savepoint.QueryRow(ctx, "-- verify.holds\nselect coalesce(bool_and("+condition+"), true)\nfrom ("+rows+") q").
		Scan(&holds)
	if pgtx.Code(err) != "" && ctx.Err() == nil {
		return true, nil
	}
	return holds, err
}
