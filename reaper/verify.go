package reaper

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/gatesql"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/verify"
)

// Severities of a problem.
const (
	SeverityError   = "error"   // an apply fails, or reaps what it should not
	SeverityWarning = "warning" // it works, but not as well as it should
)

// Codes of problems.
const (
	CodeTableMissing       = "table_missing"        // a table does not exist, or is not on the search path
	CodeColumnMissing      = "column_missing"       // a table lacks a column
	CodeColumnType         = "column_type"          // a column has a type that does not serve
	CodeColumnNullable     = "column_nullable"      // attempts or max_attempts may be NULL
	CodeColumnRequired     = "column_required"      // a column must not be NULL, and an apply leaves it so
	CodeColumnLength       = "column_length"        // a column is too short for what an apply writes
	CodeColumnGenerated    = "column_generated"     // a column is generated, and an apply writes it
	CodeCheckExcludesState = "check_excludes_state" // a CHECK rejects what an apply writes
	CodeStateMissing       = "state_missing"        // an enum lacks a state
	CodeKeyMissing         = "key_missing"          // nothing makes the job's id, or a setting's key, unique
	CodeKeyType            = "key_type"             // the letters' job_id cannot hold the queue's key, or not twice
	CodeIndexMissing       = "index_missing"        // no index serves the claim or finds an id, or one holds other rows
	CodeReplicaIdentity    = "replica_identity"     // a published table's replica identity is missing or too small
	CodeMarkIsDefault      = "mark_is_default"      // free jobs have by default what marks a dead one
	CodeLockIneffective    = "lock_ineffective"     // a lock has no bound on its wait, or does not hold a gate
	CodeStatementRejected  = "statement_rejected"   // PostgreSQL rejects a statement for another reason
	CodePrivilegeMissing   = "privilege_missing"    // the role may not do what an apply does
	CodeRowSecurity        = "row_security"         // policies hide rows from the role
	CodeReadOnly           = "read_only"            // the connection's transactions are read-only
	CodeStandby            = "standby"              // the server is a hot standby
	CodeSettingInvalid     = "setting_invalid"      // a setting does not parse
	CodeFunctionMissing    = "function_missing"     // the mover's function does not exist
	CodeFunctionSignature  = "function_signature"   // it takes or returns something else
	CodeLeaseEndless       = "lease_endless"        // leased jobs without an end, a start or a possible length
	CodeLeaseInfinite      = "lease_infinite"       // leased jobs that end at infinity
	CodeLeaseFar           = "lease_far"            // leased jobs that end more than a week from now
)

// Report is what Verify or Rehearse found, worst first. Without problems it is sound.
type Report struct {
	Problems []Problem `json:"problems"` // never nil
}

// Problem is one thing that keeps a reaper from working as it should.
type Problem struct {
	Code     string `json:"code"`     // one of the codes
	Severity string `json:"severity"` // SeverityError or SeverityWarning
	Object   string `json:"object"`   // what it is about, as SQL names it
	Message  string `json:"message"`  // a sentence
	Fix      string `json:"fix"`      // SQL that solves it; empty when no SQL does
}

// String lays the report out for people, a problem a paragraph.
func (r Report) String() string {
	if len(r.Problems) == 0 {
		return "no problems\n"
	}
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "%s %s: %s\n    %s\n", p.Severity, p.Code, p.Object, p.Message)
		for line := range strings.Lines(p.Fix) {
			fmt.Fprintf(&b, "    > %s\n", strings.TrimRight(line, "\n"))
		}
	}
	return b.String()
}

// Verify checks what this Reaper needs, with the role and the connection that it will
// use, and reports all problems at once: the tables and their columns, the key and the
// index, the role's privileges, the settings, the mover's function, and rows that no
// reaper will ever reap.
//
// It only reads, in a read-only transaction, and reads the catalogs more than the
// tables. If it has found no error so far, the server plans the statements of an apply;
// none is run. It knows the library's own sources and movers. A source of the caller's
// is read once, and a mover in Go is not checked. A closed gate is no problem. Verify does
// not report what the JSON of a dead letter cannot hold in any queue, such as the bounds
// of an array: [deadletter.Redrive] lists that. An error means that nothing could be
// checked.
func (r *Reaper) Verify(ctx context.Context) (*Report, error) {
	tx, err := r.beginReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	defer pgtx.Rollback(ctx, tx)
	found, err := verify.Problems(ctx, tx, r.verifyTarget())
	if err != nil {
		return nil, fmt.Errorf("reaper: verify: %w", err)
	}
	report := &Report{Problems: make([]Problem, len(found))}
	for i, problem := range found {
		report.Problems[i] = Problem(problem)
	}
	return report, nil
}

// verifyTarget is this Reaper as package verify checks it.
func (r *Reaper) verifyTarget() verify.Target {
	target := verify.Target{
		Queue:      r.cfg.Queue.mapping(),
		Stale:      r.sql.Stale,
		Scope:      r.scope,
		Writes:     r.plannedWrites(),
		Insert:     r.plannedInsert,
		LastError:  LastErrorReaped,
		FinalError: FinalErrorReaped,
		Gates:      fmt.Sprintf("%T", r.cfg.Gates),
		Letters:    r.letters,
		Function:   r.function,
		Redrives:   !r.callsMover(),
	}
	read := r.cfg.Gates.Read
	if table, ok := r.cfg.Gates.(gates.Table); ok {
		target.Settings, read = orName(table.Name, gatesql.DefaultTable), table.ReadUnlocked
	}
	target.Read = func(ctx context.Context, tx pgx.Tx) (values gates.Values, err error) {
		err = recoverPanic("source", func() (err error) {
			values, err = read(ctx, tx, gates.Keys())
			return err
		})
		return values, err
	}
	return target
}

// plannedWrites are the statements of an apply that Verify has planned. Their arrays are
// empty.
func (r *Reaper) plannedWrites() []verify.Statement {
	sql := r.sql.ByKey
	return []verify.Statement{
		{Act: "claim", SQL: sql.Claim, Args: []any{r.scope, int64(1), nil, nil}},
		{Act: "reset", SQL: sql.Reset, Args: []any{r.scope, LastErrorReaped, "{}", "{}", "{}", "{}"}},
		{Act: "move", SQL: sql.Close, Args: []any{r.scope, FinalErrorReaped, "{}", "{}", "{}"}},
	}
}

// plannedInsert is the statement that stores letters.
func (r *Reaper) plannedInsert(jsonb bool) verify.Statement {
	sql := r.sql.ByKey.Insert
	if jsonb {
		sql = r.sql.ByKey.InsertJSONB
	}
	return verify.Statement{Act: "move", SQL: sql, Args: []any{r.scope, "{}", FinalErrorReaped, "", "{}", "{}"}}
}
