package suite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

// A goal that is called reached and is not is the one thing a reader cannot
// forgive.
func TestReached(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		value float64
		goal  *suite.Goal
		why   string
		want  bool
	}{
		"no goal":                     {1, nil, "", true},
		"at least, and more":          {2.1, &suite.Goal{Bound: 2}, "", true},
		"at least, and just so":       {2, &suite.Goal{Bound: 2}, "", true},
		"at least, and a little less": {1.999, &suite.Goal{Bound: 2}, "", false},
		"at most, and less":           {0, &suite.Goal{Most: true}, "", true},
		"at most, and a little more":  {1.001, &suite.Goal{Most: true, Bound: 1}, "", false},
		"not run":                     {0, &suite.Goal{Most: true, Bound: 1}, "no Node.js", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finding := suite.Finding{Value: stat.Exactly(test.value), Goal: test.goal, NotRun: test.why}
			require.Equal(t, test.want, finding.Reached())
		})
	}
}
