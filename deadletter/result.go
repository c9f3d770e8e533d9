package deadletter

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// RedriveResult is what a redrive did.
type RedriveResult struct {
	Actor         string     `json:"actor"`
	RedrivenAt    time.Time  `json:"redriven_at"` // the transaction's start, by the database's clock
	RedrivenCount int        `json:"redriven_count"`
	SkippedCount  int        `json:"skipped_count"`
	FailedCount   int        `json:"failed_count"`
	Redriven      []Redriven `json:"redriven"` // in the order of their oldest letters
	Skipped       []Skip     `json:"skipped"`
	Failures      []Failure  `json:"failures"`

	// Next is the Filter.After with which a redrive goes on behind this one, past
	// the letters that it skipped. It is empty when fewer letters than the limit
	// were found.
	Next string `json:"next,omitempty"`
}

// Redriven is a job that is back in the queue.
type Redriven struct {
	JobID         string   `json:"job_id"`          // the key in its text form
	DeadLetterIDs []string `json:"dead_letter_ids"` // its letters that were marked, newest first
	Rebuilt       bool     `json:"rebuilt"`         // the queue row was gone, and is there again
}

// Why a redrive left a letter alone.
const (
	SkipAlive     = "alive"            // the queue row is in another state: someone requeued it manually
	SkipLocked    = "locked"           // someone else has the letter, another one of its job, or the queue row
	SkipAmbiguous = "ambiguous"        // several queue rows have the job's id
	SkipNotFound  = "not_found"        // no letter has the id that was asked for
	SkipRedriven  = "already_redriven" // asked for by id
	SkipFiltered  = "filtered_out"     // asked for by id, and not let through by the rest of the filter
)

// Skip is a letter that a redrive left alone, with its job.
type Skip struct {
	DeadLetterID string `json:"dead_letter_id"`
	JobID        string `json:"job_id"` // empty where there is no letter
	Reason       string `json:"reason"` // SkipAlive and the like
}

// Failure is a letter whose job PostgreSQL rejected. Both are as they were.
type Failure struct {
	DeadLetterID string `json:"dead_letter_id"`
	JobID        string `json:"job_id"`
	SQLState     string `json:"sqlstate"` // PostgreSQL's error code; empty when it gave none
	Error        string `json:"error"`    // PostgreSQL's message, or names alone where that may hold what the job held
}

// PurgeResult adds up what the batches of a purge did.
type PurgeResult struct {
	RedrivenCount   int       `json:"redriven_count"`   // redriven letters that are gone
	UnredrivenCount int       `json:"unredriven_count"` // unredriven letters that are gone
	JobCount        int       `json:"job_count"`        // queue rows that went with them
	Batches         int       `json:"batches"`          // that removed something
	FailedCount     int       `json:"failed_count"`     // letters that were rejected; each is tried once
	Failures        []Failure `json:"failures"`         // the first 100 of them
}

// MarshalJSON writes lists as lists, also when they are empty.
func (r RedriveResult) MarshalJSON() ([]byte, error) {
	type plain RedriveResult
	r.RedrivenAt = r.RedrivenAt.UTC()
	r.Redriven, r.Skipped, r.Failures = orEmpty(r.Redriven), orEmpty(r.Skipped), orEmpty(r.Failures)
	return json.Marshal(plain(r))
}

// MarshalJSON writes lists as lists, also when they are empty.
func (r Redriven) MarshalJSON() ([]byte, error) {
	type plain Redriven
	r.DeadLetterIDs = orEmpty(r.DeadLetterIDs)
	return json.Marshal(plain(r))
}

// MarshalJSON writes lists as lists, also when they are empty.
func (r PurgeResult) MarshalJSON() ([]byte, error) {
	type plain PurgeResult
	r.Failures = orEmpty(r.Failures)
	return json.Marshal(plain(r))
}

// insufficientPrivilege is the SQLSTATE of a role that lacks a privilege, or of a
// policy that rejects a row.
const insufficientPrivilege = "42501"

// newFailure tells why a job was rejected.
func newFailure(letter, job string, err error) *Failure {
	f := &Failure{DeadLetterID: letter, JobID: job, Error: errIgnored.Error()}
	if pgErr := pgtx.ServerError(err); pgErr != nil {
		f.SQLState, f.Error = pgErr.Code, message(pgErr)
	}
	return f
}

// message is PostgreSQL's own, unless it may hold a stored value. Then it says
// what is known besides, which is names.
func message(err *pgconn.PgError) string {
	switch {
	case namesOnly(err):
		return err.Message
	case err.ConstraintName != "":
		return fmt.Sprintf("the constraint %q rejected the row", err.ConstraintName)
	case err.ColumnName != "":
		return fmt.Sprintf("the column %q rejected the row", err.ColumnName)
	case pgtx.Class(err.Code) == "22":
		return "a stored value does not fit its column"
	}
	return "the row was rejected; PostgreSQL's message is left out, as it may hold what the job held"
}

// namesOnly reports whether a message holds names and numbers alone. Its SQLSTATE
// does not tell: a trigger raises any of them with any text, and messages of the
// types quote their input under several classes. So it is told by the server's
// source file that reported the error: those that check constraints, privileges,
// locks and the sizes of rows. What has a position is about the text of the
// statement, which holds no values.
func namesOnly(err *pgconn.PgError) bool {
	return err.Position != 0 || slices.Contains([]string{
		"execMain.c", "execExprInterp.c", "execIndexing.c", "execPartition.c", "domains.c", // constraints, policies
		"nbtinsert.c", "nbtutils.c", "ri_triggers.c", // unique and foreign keys
		"aclchk.c", "postgres.c", "lock.c", "proc.c", "deadlock.c", "heapam.c", "hio.c", // privileges, time-outs, sizes
	}, err.File)
}

// discreet is an error of a write without what it may hold of a job.
func discreet(err error) error {
	pgErr := pgtx.ServerError(err)
	if pgErr == nil {
		return err
	}
	quiet := *pgErr
	quiet.Message = message(pgErr)
	quiet.Detail, quiet.Hint, quiet.Where, quiet.InternalQuery = "", "", "", ""
	return &quiet
}
