package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// errPanicked is wrapped by the error for a panic, as of a function of the configuration.
var errPanicked = errors.New("console: panic")

// explain says what an error means for a person, and with which status. What
// a driver says of a connection holds addresses and accounts, so it is for the log.
func explain(err error) (status int, text string) {
	var pgErr *pgconn.PgError
	var value *gates.ValueError
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.status, f.Text
	case errors.Is(err, reaper.ErrOutcomeUnknown), errors.Is(err, deadletter.ErrOutcomeUnknown):
		return http.StatusServiceUnavailable, "The connection broke while the change was being committed. " +
			"It happened whole or not at all. Look at the queue, and try again: that is safe."
	case errors.As(err, &value):
		return http.StatusConflict, fmt.Sprintf("The setting %s has the value %q, which means nothing. "+
			"Nothing is reaped until it is corrected.", value.Key, value.Value)
	case isInvalid(err):
		return http.StatusBadRequest, "That is not valid: " + err.Error()
	case errors.Is(err, reaper.ErrReadOnly), errors.Is(err, deadletter.ErrReadOnly):
		return http.StatusServiceUnavailable, "The database is read-only now: a standby, or set so. " +
			"Nothing was changed."
	case errors.As(err, &pgErr) && pgErr.SeverityUnlocalized != "FATAL":
		return http.StatusBadGateway, fmt.Sprintf("PostgreSQL rejects a statement: %s (SQLSTATE %s).%s",
			pgErr.Message, pgErr.Code, hintOf(pgErr.Code))
	case errors.Is(err, errPanicked):
		return http.StatusInternalServerError, "The console failed. Its log says why."
	case errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, "The request was cancelled."
	}
	return http.StatusServiceUnavailable, "The database does not answer."
}

func isInvalid(err error) bool {
	for _, invalid := range []error{
		reaper.ErrPlan, reaper.ErrLimit, reaper.ErrActor, deadletter.ErrFilter, deadletter.ErrID, deadletter.ErrLimit,
		deadletter.ErrActor, deadletter.ErrNegative, gates.ErrKey, gates.ErrActor, gates.ErrDuration,
	} {
		if errors.Is(err, invalid) {
			return true
		}
	}
	return false
}

// hintOf says what to do about an error that a wrong set-up causes.
func hintOf(sqlState string) string {
	switch sqlState {
	case "42P01":
		return " A table is missing: see Verify."
	case "42703":
		return " A column is missing: see Verify."
	case "42501":
		return " The console's role lacks a privilege: see Verify."
	case "57014":
		return " It took longer than the console lets it."
	case "55P03":
		return " Somebody else holds a lock."
	}
	return ""
}
