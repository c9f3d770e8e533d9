// Package verify finds what would keep a reaper from working as it should, in the
// tables, the settings and the mover's function, and gives SQL that solves it.
//
// It reads the catalogs, asks the planner, and has the server evaluate conditions
// over made-up rows. Of the queue it reads rows that an index serves alone.
package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/mapping"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// Target is the set-up that is checked. No name in it is quoted.
type Target struct {
	Queue mapping.Queue

	Stale string // SQL: the row q has a stale lease
	Scope any    // the $1 of Stale

	LastError, FinalError string // what an apply writes as such

	Gates    string                                                     // the type of the gates' source
	Settings pgx.Identifier                                             // nil: Gates is no table
	Read     func(ctx context.Context, tx pgx.Tx) (gates.Values, error) // of Gates; it locks no row of Settings

	Writes []Statement                // of the queue
	Insert func(jsonb bool) Statement // of Letters, with documents of type jsonb or not

	Letters  pgx.Identifier // nil: another mover
	Function pgx.Identifier // nil: another mover
	Redrives bool           // the jobs that are moved can be redriven
}

// Problem is one thing that is wrong, as package reaper reports it.
type Problem struct{ Code, Severity, Object, Message, Fix string }

// Severities of a problem.
const (
	severityError   = "error"
	severityWarning = "warning"
)

// verifier collects problems.
type verifier struct {
	target        Target
	tx            pgx.Tx
	names         *strings.Replacer // puts the queue's names into a statement
	role          string            // quoted
	roleLiteral   string            // quoted as a literal
	queue         *catalog.Table    // nil when it does not exist
	blocksQueries bool              // a statement would fail on the table that was checked last
	problems      []Problem
}

// Problems returns all problems of a set-up, worst first. It makes the transaction
// read-only. The error says that nothing could be checked.
func Problems(ctx context.Context, tx pgx.Tx, target Target) ([]Problem, error) {
	names := target.Queue.Names() // their faults were New's
	names.Add("stale", target.Stale)
	v := &verifier{target: target, tx: tx, names: strings.NewReplacer(names.Pairs...)}
	for _, check := range []func(context.Context) error{
		v.server, v.queueTable, v.deadLetters, v.moverFunction, v.settings,
	} {
		if err := check(ctx); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(v.problems, func(a, b Problem) int { return cmp.Compare(a.Severity, b.Severity) })
	return v.problems, nil
}

// error reports what makes an apply fail, or reap what it should not.
func (v *verifier) error(code, object, fix, message string, args ...any) {
	v.add(severityError, code, object, fix, message, args...)
}

// warn reports what works, but not as well as it should.
func (v *verifier) warn(code, object, fix, message string, args ...any) {
	v.add(severityWarning, code, object, fix, message, args...)
}

// add reports a problem. message is a format for args.
func (v *verifier) add(severity, code, object, fix, message string, args ...any) {
	v.problems = append(v.problems, Problem{
		Code: code, Severity: severity, Object: object, Message: fmt.Sprintf(message, args...), Fix: fix,
	})
}

// sqlSettings makes the transaction read-only, since a savepoint does not begin as
// one. The server would compile the catalogs' statements, which takes a second for
// some of them and a millisecond to run. Types are told by their names, which the
// server prints in quotes for a role that has it quote all identifiers.
const sqlSettings = `-- verify.settings
select set_config('transaction_read_only', 'on', true),
  set_config('jit', 'off', true),
  set_config('quote_all_identifiers', 'off', true)`

// sqlServer reads what is true of the whole connection.
const sqlServer = `-- verify.server
select quote_ident(current_user), quote_literal(current_user),
  pg_is_in_recovery(),
  current_setting('default_transaction_read_only')::boolean,
  quote_ident(current_database())`

func (v *verifier) server(ctx context.Context) error {
	if _, err := v.tx.Exec(ctx, sqlSettings); err != nil {
		return err
	}
	var standby, readOnly bool
	var database string
	if err := v.tx.QueryRow(ctx, sqlServer).Scan(&v.role, &v.roleLiteral, &standby, &readOnly, &database); err != nil {
		return err
	}
	switch {
	case standby:
		v.error("standby", database, "",
			"The server is a hot standby: dry runs work, applies do not. Connect to the primary.")
	case readOnly:
		v.error("read_only", v.role,
			fmt.Sprintf("alter role %s in database %s set default_transaction_read_only = off", v.role, database),
			"Transactions of this connection are read-only unless they say otherwise, so an apply fails. "+
				"The setting may also come from the database, the server or the connection string.")
	}
	return nil
}

// try calls a function in a savepoint, so that its failure does not end the transaction. What it writes is rolled back.
func (v *verifier) try(ctx context.Context, call func(tx pgx.Tx) error) error {
	savepoint, err := v.tx.Begin(ctx)
	if err != nil {
		return err
	}
	defer pgtx.Rollback(ctx, savepoint)
	return call(savepoint)
}

// quote quotes a column's name.
func quote(column string) string { return pgx.Identifier{column}.Sanitize() }

// at names a column of a table.
func at(t *catalog.Table, column string) string { return t.SQL + "." + quote(column) }

// alter is the statement that changes a column of a table.
func alter(t *catalog.Table, column, change string) string {
	return fmt.Sprintf("alter table %s alter column %s %s", t.SQL, quote(column), change)
}

// nullable is the statement that lets a column be NULL, out of its domain if that is what
// forbids it.
func nullable(t *catalog.Table, column *catalog.Column) string {
	if column.NotNullItself {
		return alter(t, column.Name, "drop not null")
	}
	return retype(t, column.Name, column.Base)
}

// retype is the statement that gives a column another type, or nothing for a column of
// a view. A time gets a zone, or loses it, as one in UTC.
func retype(t *catalog.Table, column, typeSQL string) string {
	using := quote(column) + "::" + typeSQL
	if c := t.Column(column); isTime(typeSQL) && c != nil && isTime(c.Type) {
		using = quote(column) + " at time zone 'utc'"
	}
	return unlessView(t, alter(t, column, "type "+typeSQL+" using "+using))
}

// unlessView is a statement that changes a table's columns, which no view can take.
func unlessView(t *catalog.Table, sql string) string {
	if t.Kind == "v" || t.Kind == "m" {
		return ""
	}
	return sql
}
