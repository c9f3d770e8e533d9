package reaper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// checks tries the CHECK constraints that are about columns alone of which it is
// known what is written. The server evaluates each over the values, as an update
// of the role's own would; no row is read.
func (v *verifier) checks(ctx context.Context, t *catalog.Table, object string, writes []write) error {
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
				v.excluded(check, object, w)
				break
			}
		}
	}
	return nil
}

// excluded reports a CHECK that rejects a write. What it should allow is not for
// the library to say, so the fix drops it.
func (v *verifier) excluded(check catalog.Check, object string, w write) {
	p := Problem{
		Code: CodeCheckExcludesState, Severity: w.severity, Object: object,
		Message: fmt.Sprintf("The CHECK %s rejects what a %s writes (%s): every %s fails. "+
			"The fix drops it; make one again that allows these values.", check.Name, w.act, w.over(check), w.act),
		Fix: fmt.Sprintf("alter table %s drop constraint %s", object, check.Name),
	}
	if check.Domain != "" {
		p.Object = check.Domain
		p.Fix = fmt.Sprintf("alter domain %s drop constraint %s", check.Domain, check.Name)
	}
	v.add(p)
}

// over lists what a write puts into the columns of a CHECK.
func (w write) over(check catalog.Check) string {
	parts := make([]string, len(check.Columns))
	for i, name := range check.Columns {
		x, _ := w.value(name)
		parts[i] = fmt.Sprintf("%s %q", name, x.text)
		if x.kind == null {
			parts[i] = name + " NULL"
		}
	}
	return strings.Join(parts, ", ")
}

// rowOf is a row with the written values of a CHECK's columns, as a subquery, or
// not ok where one of them is not known.
func rowOf(t *catalog.Table, check catalog.Check, w write) (row string, ok bool) {
	columns := make([]string, len(check.Columns))
	for i, name := range check.Columns {
		x, written := w.value(name)
		column := t.Column(name)
		if !written || column == nil || x.kind != known && x.kind != null {
			return "", false
		}
		literal := "null"
		if x.kind == known {
			var err error
			if literal, err = pgtext.Label(x.text); err != nil {
				return "", false
			}
		}
		if check.Domain != "" {
			name = "value"
		}
		columns[i] = fmt.Sprintf("%s::%s as %s", literal, column.Base, pgx.Identifier{name}.Sanitize())
	}
	return "select " + strings.Join(columns, ", "), true
}

// holds evaluates a condition over rows, in a savepoint: it is a user's, and may
// fail. A CHECK that is NULL holds, and one that cannot be evaluated so is not
// known to fail.
func (v *verifier) holds(ctx context.Context, condition, rows string) (bool, error) {
	savepoint, err := v.tx.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer pgtx.Rollback(ctx, savepoint)
	var holds bool
	err = savepoint.QueryRow(ctx, "-- verify.holds\nselect coalesce(bool_and("+condition+"), true)\nfrom ("+rows+") q").
		Scan(&holds)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && ctx.Err() == nil {
		return true, nil
	}
	return holds, err
}
