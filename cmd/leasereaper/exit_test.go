package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

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
			err: fmt.Errorf("reaper: claim: %w", context.Canceled), status: exitError, want: "leasereaper: interrupted\n",
		},
		"interrupted during the commit": {
			err: fmt.Errorf("%w: %w", reaper.ErrOutcomeUnknown, context.Canceled), status: exitError,
			want: "leasereaper: reaper: connection broke during commit, outcome unknown: context canceled\n" +
				"   it happened whole or not at all; look, then call again: what was done is not done twice\n",
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
