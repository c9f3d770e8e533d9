package reaper

import (
	"errors"
	"fmt"
	"slices"

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

// isConflict reports a serialization failure or a deadlock: the server has
// rolled back, and the same may go through next time.
func isConflict(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "40001" || pgErr.Code == "40P01")
}

// concernsRows reports whether an error may be due to some rows of the batch, so
// that the others could be settled without them.
func concernsRows(err error) bool {
	var hook *hookError
	if errors.As(err, &hook) || errors.Is(err, deadletter.ErrUnavailable) {
		return false
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return !slices.Contains(beyondRows(), class(pgErr.Code))
	}
	var away *turnedAwayError
	var mover *moverError
	return errors.As(err, &away) || errors.As(err, &mover)
}

// beyondRows returns the classes of SQLSTATE that no single row is to blame for,
// from the appendix "PostgreSQL Error Codes" of the manual. All others, those
// that users make up for their triggers among them, may be a row's.
func beyondRows() []string {
	return []string{
		"08", // connection exception
		"0A", // feature not supported
		"25", // invalid transaction state, as in a read-only transaction
		"26", // invalid SQL statement name
		"28", // invalid authorization
		"3D", // invalid catalog name
		"3F", // invalid schema name
		"40", // transaction rollback: serialization failure, deadlock
		"42", // syntax error or access rule violation: privileges, missing objects
		"53", // insufficient resources: disk full
		"55", // object not in prerequisite state: lock not available
		"57", // operator intervention: shutdown, cancellation
		"58", // system error
		"F0", // configuration file error
		"XX", // internal error
	}
}

func class(sqlState string) string { return sqlState[:min(2, len(sqlState))] }

// without marks the failures and returns the other jobs.
func without(jobs []*claimed, failures []*Failure) []*claimed {
	byID := make(map[string]*Failure, len(failures))
	for _, failure := range failures {
		byID[failure.JobID] = failure
	}
	rest := make([]*claimed, 0, len(jobs))
	for _, job := range jobs {
		if job.failure = byID[job.ID]; job.failure == nil {
			rest = append(rest, job)
		}
	}
	return rest
}

func failureOf(job *claimed, err error) *Failure {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return &Failure{JobID: job.ID, SQLState: pgErr.Code, Error: pgErr.Message}
	}
	return &Failure{JobID: job.ID, Error: err.Error()}
}

// typed marks the errors that have a sentinel of the library's.
func typed(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "25006" { // read_only_sql_transaction
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}
