package verify

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Statement is one that the library sends, with arguments that name no row.
type Statement struct {
	Act  string // as in "every reset fails"
	SQL  string
	Args []any
}

// sqlShortWait bounds the wait for the lock on a table, which EXPLAIN takes as the
// statement itself does.
const sqlShortWait = `-- verify.short_wait
set local lock_timeout = '1s'`

// codeOf are the codes of what PostgreSQL rejects, by SQLSTATE.
var codeOf = map[string]string{
	"22P02": "column_type",       // a constant is none of the column's type
	"22003": "column_type",       // a number is out of its range
	"22007": "column_type",       // it is no time
	"22008": "column_type",       // it is out of the range of times
	"42804": "column_type",       // an expression is of another type
	"42883": "column_type",       // no operator compares the types
	"42501": "privilege_missing", // on what the statement uses besides the table
	"42P10": "replica_identity",  // a publication needs columns that the identity lacks
}

// statements has the server plan the library's own statements and run none. That
// finds what is known by no other check: views that cannot be written, rules, types
// without a conversion. After an error it would repeat that.
func (v *verifier) statements(ctx context.Context, t *catalog.Table, statements ...Statement) error {
	for _, s := range statements {
		if slices.ContainsFunc(v.problems, func(p Problem) bool { return p.Severity == severityError }) {
			return nil
		}
		err := v.try(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sqlShortWait); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "explain "+s.SQL, s.Args...)
			return err
		})
		pgErr := pgtx.ServerError(err)
		switch {
		case pgErr == nil && err != nil, ctx.Err() != nil:
			return err
		case pgErr == nil:
			continue
		case pgErr.Code == pgtx.CodeLockNotAvailable: // nothing is known
			return nil
		case !slices.Contains([]string{"0A", "22", "42", "55"}, pgtx.Class(pgErr.Code)):
			return err
		}
		v.blocksQueries = true // what was planned and not run has no stored value in its error
		v.error(cmp.Or(codeOf[pgErr.Code], "statement_rejected"), t.SQL, "",
			"PostgreSQL rejects the statement (SQLSTATE %s, %s): every %s fails.", pgErr.Code,
			strings.Trim(pgErr.Message+". "+pgErr.Detail, ". "), s.Act)
	}
	return nil
}
