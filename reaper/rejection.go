package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/deadletter"
)

// turnedAwayError names jobs that a trigger, a policy or the mover turned away.
type turnedAwayError struct{ failures []*Failure }

func (e *turnedAwayError) Error() string {
	return fmt.Sprintf("reaper: %d jobs turned away", len(e.failures))
}

func turnedAway(failures []*Failure) error {
	if len(failures) == 0 {
		return nil
	}
	return &turnedAwayError{failures}
}

// moverError is an error of the mover's while the connection was sound.
type moverError struct{ err error }

func (e *moverError) Error() string { return fmt.Sprintf("reaper: move to dead letters: %v", e.err) }
func (e *moverError) Unwrap() error { return e.err }

// hookError is an error of OnApply. It is the apply's error, whatever it wraps,
// unless that is a conflict.
type hookError struct{ err error }

func (e *hookError) Error() string { return fmt.Sprintf("reaper: OnApply: %v", e.err) }
func (e *hookError) Unwrap() error { return e.err }

// sourceError is an error of a source of the caller's own.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return fmt.Sprintf("reaper: read gates: %v", e.err) }
func (e *sourceError) Unwrap() error { return e.err }

// settleError is an error that came while jobs were settled, or, from a deferred
// constraint, at the commit.
type settleError struct {
	err      error
	atCommit bool
}

func (e *settleError) Error() string { return e.err.Error() }
func (e *settleError) Unwrap() error { return e.err }

// isConflict reports a serialization failure, a deadlock, or a prepared statement
// that a change of the table made void: the same may go through next time.
func isConflict(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) &&
		(pgErr.Code == "40001" || pgErr.Code == "40P01" || pgErr.Routine == "RevalidateCachedQuery")
}

// mayBlameRows reports whether an error that came while jobs were settled may be
// due to some of them, so that the others could be settled without them.
func mayBlameRows(ctx context.Context, err error) bool {
	var hook *hookError
	if ctx.Err() != nil || errors.As(err, &hook) || errors.Is(err, deadletter.ErrUnavailable) {
		return false
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return isError(pgErr) && pgErr.Code != readOnly
	}
	var away *turnedAwayError
	var mover *moverError
	return errors.As(err, &away) || errors.As(err, &mover)
}

// mayBlameAll reports whether an error is of a class that is mostly due to no row
// at all, but to privileges, missing objects, resources, cancellation. A trigger
// or a policy can raise it for one row all the same, so it is only believed when
// no job goes through. The classes are from the appendix "PostgreSQL Error Codes"
// of the manual.
func mayBlameAll(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && slices.Contains([]string{
		"08", // connection exception
		"0A", // feature not supported
		"25", // invalid transaction state
		"26", // invalid SQL statement name
		"28", // invalid authorization
		"3D", // invalid catalog name
		"3F", // invalid schema name
		"40", // transaction rollback: serialization failure, deadlock
		"42", // syntax error or access rule violation: privileges, missing objects
		"53", // insufficient resources: disk full
		"55", // object not in prerequisite state: lock not available
		"57", // operator intervention: cancellation
		"58", // system error
		"F0", // configuration file error
		"XX", // internal error
	}, class(pgErr.Code))
}

func class(sqlState string) string { return sqlState[:min(2, len(sqlState))] }

// readOnly is read_only_sql_transaction.
const readOnly = "25006"

// typed marks the errors that have a sentinel of the library's.
func typed(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == readOnly {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}

// without marks the failures and returns the other jobs.
func without(jobs []*claimed, failures []*Failure) []*claimed {
	if len(failures) == 0 {
		return jobs
	}
	byID := make(map[string]*Failure, len(failures))
	for _, failure := range failures {
		byID[failure.JobID] = failure
	}
	rest := make([]*claimed, 0, len(jobs))
	for _, job := range jobs {
		if job.failure = byID[job.id]; job.failure == nil {
			rest = append(rest, job)
		}
	}
	return rest
}

// isKeptBack reports the error with which sqlReset says that a trigger kept a job
// leased. In any language the message holds the text.
func isKeptBack(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "22P02" && strings.Contains(pgErr.Message, "leasereaper: kept back")
}

func failureOf(job *claimed, err error) *Failure {
	var pgErr *pgconn.PgError
	switch {
	case isKeptBack(err):
		return &Failure{JobID: job.id, Error: keptBack}
	case errors.As(err, &pgErr):
		return &Failure{JobID: job.id, SQLState: pgErr.Code, Error: pgErr.Message}
	}
	return &Failure{JobID: job.id, Error: err.Error()}
}
