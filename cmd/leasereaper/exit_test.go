package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// A program that reads JSON would have to parse sentences.
func TestErrorsAreJSONToo(t *testing.T) {
	t.Parallel()

	var errs strings.Builder
	x := &tool{errs: &errs, began: true, json: true}
	x.complain(refused(true, "queue.lease.reaper_enabled=false"))
	require.JSONEq(t, `{
		"error": "refused: queue.lease.reaper_enabled=false", "reason": "queue.lease.reaper_enabled=false", "status": 3,
		"hints": ["nothing was changed; to open this gate: leasereaper gates set queue.lease.reaper_enabled true"]
	}`, errs.String())

	errs.Reset()
	x.complain(fmt.Errorf("reaper: claim: %w", &pgconn.PgError{Severity: "ERROR", Code: "42501", Message: "no"}))
	require.JSONEq(t, `{"error": "claim: ERROR: no (SQLSTATE 42501)", "sqlstate": "42501", "status": 1}`, errs.String())
}

// A script would go on after a refusal, or an operator would read that nothing
// has happened where nobody can know.
func TestErrorsHaveAStatusAndALine(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		err    error
		before bool // it came up before the command began
		status int
		want   string
	}{
		"wrong use": {
			err: misused("no"), status: exitUsage, want: "leasereaper: no\n   leasereaper --help says how it is called\n",
		},
		"wrong flags": {
			err: errors.New("unknown flag"), before: true, status: exitUsage,
			want: "leasereaper: unknown flag\n   leasereaper --help says how it is called\n",
		},
		"an error": {err: errors.New("no\nno\n more"), status: exitError, want: "leasereaper: no more\n"},
		"a refusal": {
			err: refused(true, "actor_required"), status: exitRefused,
			want: "leasereaper: refused: actor_required\n   nothing was changed\n",
		},
		"a refusal beside an error": {
			err:    errors.Join(errors.New("write: broken pipe"), refused(true, "actor_required")),
			status: exitRefused, want: "leasereaper: write: broken pipe refused: actor_required\n   nothing was changed\n",
		},
		"interrupted": {
			err: errInterrupted, before: true, status: exitError, want: "leasereaper: interrupted\n",
		},
		"interrupted during the commit": {
			err: fmt.Errorf("%w: %w", reaper.ErrOutcomeUnknown, context.Canceled), status: exitError,
			want: "leasereaper: connection broke during commit, outcome unknown: context canceled\n" +
				"   it happened whole or not at all; look, then call again: what was done is not done twice\n",
		},
		"one error twice, with the library's names": {
			err:    errors.Join(errors.New("reaper: claim: gates: no"), errors.New("reaper: claim: gates: no")),
			status: exitError, want: "leasereaper: claim: no\n",
		},
		"a server that wants to write on the terminal": {
			err: errors.New("\x1b[2Jno"), status: exitError, want: "leasereaper: ·[2Jno\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var errs strings.Builder
			x := &tool{errs: &errs, began: !test.before}
			x.complain(test.err)
			require.Equal(t, test.want, errs.String())
			require.Equal(t, test.status, x.status(test.err))
		})
	}
}
