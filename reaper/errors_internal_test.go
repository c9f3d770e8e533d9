package reaper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/loop"
)

func serverError(sqlState string) error {
	return &pgconn.PgError{Code: sqlState, SeverityUnlocalized: "ERROR"}
}

// drained is what a loop makes of the results of a drain.
func drained(results ...*ApplyResult) error {
	r := newRunner(&Reaper{}, "", RunConfig{})
	var all loop.AllRejected
	for _, result := range results {
		r.keepFailures(result, new(loop.Rejections), &all)
	}
	return all.Err()
}

// What is taken for an outage delays every reap by Settle; what is not may kill a
// job that runs.
func TestWhatAnErrorSaysOfTheDatabase(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		err  error
		want loop.Fault
	}{
		"nothing":                         {nil, loop.Other},
		"a lost connection":               {io.ErrUnexpectedEOF, loop.Outage},
		"a lost connection at the commit": {fmt.Errorf("%w: %w", ErrOutcomeUnknown, io.EOF), loop.Outage},
		"a server that stops":             {&pgconn.PgError{Code: "57P01", SeverityUnlocalized: "FATAL"}, loop.Outage},
		"a read-only database":            {wrapReadOnly(serverError("25006")), loop.Outage},
		"no room on the disk":             {serverError("53100"), loop.Outage},
		"no memory":                       {serverError("53200"), loop.Outage},
		"an I/O error":                    {serverError("58030"), loop.Outage},
		"somebody's lock":                 {serverError("55P03"), loop.Outage},
		"no answer to a poll":             {fmt.Errorf("poll: %w", context.DeadlineExceeded), loop.Outage},
		"a statement that takes too long": {serverError("57014"), loop.TimedOut},
		"an apply that takes too long":    {fmt.Errorf("%w: %w", errTooLong, context.DeadlineExceeded), loop.TimedOut},
		"and then breaks at the commit":   {fmt.Errorf("%w: %w", errTooLong, ErrOutcomeUnknown), loop.TimedOut},
		"a missing table":                 {serverError("42P01"), loop.Other},
		"a hook that is not at home":      {&hookError{io.EOF}, loop.Other},
		"a hook that meets a full disk":   {&hookError{serverError("53100")}, loop.Outage},
		"a mover that is not at home":     {&moverError{io.EOF}, loop.Other},
		"settings in a full database":     {&sourceError{serverError("53100")}, loop.Other},
		"a lock on the dead letters":      {&blockedError{serverError("55P03")}, loop.Other},
		"settings that are locked":        {&claimError{err: serverError("55P03"), atGates: true}, loop.Other},
		"a queue that is locked":          {&claimError{err: serverError("55P03")}, loop.Outage},
		"a hook that waits for a lock":    {&hookError{serverError("55P03")}, loop.Other},
		"a mover's full disk elsewhere":   {&moverError{serverError("53100")}, loop.Other},
		"a mover's time-out":              {&moverError{serverError("57014")}, loop.TimedOut},
		"dead letters elsewhere, away":    {&blockedError{serverError("08001")}, loop.Other},
		"the same, read-only":             {&blockedError{serverError("25006")}, loop.Other},
		"dead letters on a full disk":     {&blockedError{serverError("53100")}, loop.Outage},
		"every job rejected, no memory":   {drained(&ApplyResult{Failures: []Failure{{SQLState: "53200"}}}), loop.Outage},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, faultOf(test.err))
		})
	}
}

// A trigger may reject one row with any SQLSTATE. The others are reaped, and that
// is no outage; but when none goes through, it may be one.
func TestAllThatIsRejectedMayBeAnOutage(t *testing.T) {
	t.Parallel()

	full := Failure{SQLState: "53100"}
	tests := map[string]struct {
		results []*ApplyResult
		want    loop.Fault
	}{
		"nothing was stale":       {nil, loop.Other},
		"all of them":             {[]*ApplyResult{{Failures: []Failure{{SQLState: "23514"}, full}}}, loop.Outage},
		"but others went through": {[]*ApplyResult{{Failures: []Failure{full}}, {Actions: []Action{{}}}}, loop.Other},
		"for the locks of rows":   {[]*ApplyResult{{Failures: []Failure{{SQLState: "55P03"}}}}, loop.Other},
		"for a row's own reason":  {[]*ApplyResult{{Failures: []Failure{{SQLState: "23514"}}}}, loop.Other},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, faultOf(drained(test.results...)))
		})
	}
}

// The log tells conditions apart, and not the numbers in their messages.
func TestConditionsAreToldApart(t *testing.T) {
	t.Parallel()

	failed := func(err error) string { return outcomeOf(Pass{Err: fmt.Errorf("pass 7: %w", err)}, false).Condition() }

	require.Equal(t, failed(errors.New("request 1")), failed(errors.New("request 2")))
	require.Equal(t, failed(serverError("42P01")), failed(wrapReadOnly(serverError("42P01"))))
	require.NotEqual(t, failed(serverError("42P01")), failed(serverError("42501")))
	require.NotEqual(t, failed(&hookError{errors.New("no")}), failed(&hookError{context.DeadlineExceeded}))
	require.Equal(t, "unreachable", failed(io.EOF))
	require.Equal(t, "closed", outcomeOf(Pass{Result: refusal("closed")}, false).Condition())
	require.Empty(t, outcomeOf(Pass{Result: &ApplyResult{}}, false).Condition())
}
