package interleave_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/interleave"
)

// mutant is the library with a fault, which is made on the wire, in the text of a
// statement, or in what a caller hears.
type mutant struct {
	name     string
	scenario string
	schedule string // that catches it

	statement string         // its name, or the beginning of that
	pattern   *regexp.Regexp // in its text
	with      string

	forgets bool // that the outcome of a lost commit is unknown
}

// conditions are those of a stale lease.
var conditions = regexp.MustCompile(` and coalesce\(q\."?state"? = 'leased' and [^\n]*, false\)`)

var mutants = []*mutant{
	{
		name: "no row lock in the claim", scenario: "isolating", schedule: "aaaaaaababaabbbaaaabbbbbaabbbbbbbb",
		statement: "reaper.claim", pattern: regexp.MustCompile(`\nfor update of q skip locked`),
	},
	{
		name: "the condition not repeated in the reset", scenario: "twins", schedule: "aaaaaaaaaaaaabbb",
		statement: "reaper.reset", pattern: conditions, with: " and $1::bigint is not null",
	},
	{
		name: "the gates read without a lock", scenario: "gate", schedule: "aabbbba",
		statement: "gates.read", pattern: regexp.MustCompile(`\nfor share of c`),
	},
	{
		name: "the letters' insert without its condition", scenario: "twins", schedule: "aaaaaaaaaaaabbb",
		statement: "deadletter.insert", pattern: conditions, with: " and $1::bigint is not null",
	},
	{
		name: "a close that does not look at attempts", scenario: "twins-function", schedule: "aaaaaaaaaaabbbbbbbbbbb",
		statement: "reaper.close_moved", pattern: regexp.MustCompile(`\n {2}and q\."?attempts"? = u\.attempts\n`), with: "\n",
	},
	{
		name: "a commit reported as failed", scenario: "reapers", schedule: "aaa+bbb", forgets: true,
	},
	{
		name: "a cursor that skips equal lease ends", scenario: "drains", schedule: "acaaaabbbbb",
		statement: "reaper.claim", pattern: regexp.MustCompile(`or (q\."?job_id"? > \$4)`), with: "or false and $1",
	},
	{
		name: "a redrive that does not mark its letter", scenario: "redrives", schedule: "aaaaaabbbb",
		statement: "deadletter.mark", pattern: regexp.MustCompile(`set redriven_at = now\(\)`), with: "set redriven_at = null",
	},
}

// rewriter makes the fault in statements, and counts them.
func (m *mutant) rewriter(n *atomic.Int64) func(string) string {
	return func(sql string) string {
		if m.pattern == nil || !strings.HasPrefix(sql, "-- "+m.statement) {
			return sql
		}
		changed := m.pattern.ReplaceAllString(sql, strings.ReplaceAll(m.with, "$1:", "$$1:"))
		if changed != sql {
			n.Add(1)
		}
		return changed
	}
}

// hears makes the fault in what a caller hears.
func (m *mutant) hears(o *outcome) {
	if m.forgets && o.unknown() {
		o.err = errors.New(o.err.Error())
	}
}

// A check that finds no fault in a broken library proves nothing.
func TestMutants(t *testing.T) {
	t.Parallel()
	var caught atomic.Int64
	t.Cleanup(func() { mutantsCaught = fmt.Sprintf("mutants: %d of %d caught", caught.Load(), len(mutants)) })
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, scenarioOf(t, m.scenario))
			schedule, err := interleave.Parse(m.schedule)
			require.NoError(t, err)
			_, err = w.play(t.Context(), 1, loosely(schedule))
			require.NoError(t, err, "without the fault")

			var changed atomic.Int64
			w.mutant, w.stage.Rewrite = m, m.rewriter(&changed)
			_, err = w.play(t.Context(), 1, loosely(schedule))
			if m.pattern != nil {
				require.Positive(t, changed.Load(), "no statement has what is to be changed")
			}
			require.True(t, isViolation(err), err)
			t.Log(err)
			caught.Add(1)
		})
	}
}

// loosely follows a schedule as far as it can: a fault makes a call longer or shorter.
func loosely(schedule interleave.Schedule) interleave.Choose {
	return func(_ interleave.Schedule, possible []interleave.Action) (interleave.Action, error) {
		for len(schedule) > 0 {
			next := schedule[0]
			schedule = schedule[1:]
			if slices.Contains(possible, next) {
				return next, nil
			}
		}
		return possible[0], nil
	}
}

func scenarioOf(t *testing.T, name string) scenario {
	t.Helper()
	for _, s := range scenarios {
		if s.name == name {
			return s
		}
	}
	require.Fail(t, "no scenario", name)
	return scenario{}
}
