package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Verify looks at everything that this Reaper will rely on, with the role and
// the connection that it will use, and reports all problems at once: the tables
// and their columns, the key and the index, the role's privileges, the
// settings, the mover's function, and rows that no reaper will ever pick up.
//
// It reads only, in a read-only transaction, and the catalogs more than the
// tables. It looks into what the library knows: the reference sources and
// movers, not those of the caller's own, except that it reads such a source once.
// A closed gate is no problem. The error says that it could not look at all.
func (r *Reaper) Verify(ctx context.Context) (*Report, error) {
	tx, err := r.beginReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	defer pgtx.Rollback(ctx, tx)
	if _, err := tx.Exec(ctx, sqlVerifySettings); err != nil {
		return nil, fmt.Errorf("reaper: verify: %w", err)
	}
	v := &verifier{Reaper: r, tx: tx}
	for _, look := range []func(context.Context) error{
		v.server, v.queueTable, v.settings, v.deadLetters,
	} {
		if err := look(ctx); err != nil {
			return nil, fmt.Errorf("reaper: verify: %w", err)
		}
	}
	slices.SortStableFunc(v.problems, func(a, b Problem) int { return rank(a) - rank(b) })
	return &Report{Problems: orEmpty(v.problems)}, nil
}

// sqlVerifySettings makes the transaction read-only, since a savepoint does not begin
// as one. The server would compile the catalogs' statements, which takes a second for
// some of them and a millisecond to run.
const sqlVerifySettings = `-- verify.settings
select set_config('transaction_read_only', 'on', true), set_config('jit', 'off', true)`

func rank(p Problem) int {
	if p.Severity == SeverityError {
		return 0
	}
	return 1
}

// verifier collects problems.
type verifier struct {
	*Reaper
	tx          pgx.Tx
	role        string         // quoted
	roleLiteral string         // quoted as a literal
	queueFound  *catalog.Table // nil when it is not there
	problems    []Problem
}

func (v *verifier) add(p Problem) {
	if p.Severity == "" {
		p.Severity = SeverityError
	}
	v.problems = append(v.problems, p)
}

// sqlServer reads what is true of the whole connection.
const sqlServer = `-- verify.server
select quote_ident(current_user), quote_literal(current_user),
  pg_is_in_recovery(),
  current_setting('default_transaction_read_only')::boolean,
  quote_ident(current_database())`

func (v *verifier) server(ctx context.Context) error {
	var standby, readOnly bool
	var database string
	if err := v.tx.QueryRow(ctx, sqlServer).Scan(&v.role, &v.roleLiteral, &standby, &readOnly, &database); err != nil {
		return err
	}
	switch {
	case standby:
		v.add(Problem{
			Code: CodeStandby, Object: database,
			Message: "The server is a hot standby: dry runs work, applies do not. Connect to the primary.",
		})
	case readOnly:
		v.add(Problem{
			Code: CodeReadOnly, Object: v.role,
			Message: "Transactions of this connection are read-only unless they say otherwise, so an apply fails. " +
				"The setting may also come from the database, the server or the connection string.",
			Fix: fmt.Sprintf("alter role %s in database %s set default_transaction_read_only = off", v.role, database),
		})
	}
	return nil
}

// settings looks at the settings table, or asks another source.
func (v *verifier) settings(ctx context.Context) error {
	if table, ok := v.cfg.Gates.(gates.Table); ok {
		return v.settingsTable(ctx, table)
	}
	values, err := v.read(ctx)
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		v.values(values, "")
	case errors.As(err, &pgErr) && pgErr.Code == pgtx.CodeReadOnly: // it locks what it reads, and cannot be tried here
	default:
		v.add(Problem{
			Code: CodeSettingInvalid, Object: fmt.Sprintf("%T", v.cfg.Gates),
			Message: "The source of the settings returned an error: " + err.Error() + ".",
		})
	}
	return nil
}

// read reads a source of the caller's, in a savepoint, so that its failure does not
// keep the rest from being looked at.
func (v *verifier) read(ctx context.Context) (values gates.Values, err error) {
	tx, err := v.tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer pgtx.Rollback(ctx, tx)
	err = guarded("source", func() (err error) {
		values, err = v.cfg.Gates.Read(ctx, tx, gates.Keys())
		return err
	})
	return values, err
}

// deadLetters looks at the mover, if it is one that the library knows.
func (v *verifier) deadLetters(ctx context.Context) error {
	switch mover := v.cfg.DeadLetter.(type) {
	case deadletter.Table:
		return v.deadLetterTable(ctx, mover)
	case deadletter.Function:
		return v.moverFunction(ctx, mover)
	}
	return nil
}
