package deadletter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// Letters of one kind hold what a customer wants to be gone, and those of another
// are still looked into. A purge by age alone takes both.
func TestPurgeTakesWhatItsFilterLetsThrough(t *testing.T) {
	t.Parallel()
	all := []string{"a", "b", "c", "d"} // 4 to 1 hours old; a and c were redriven

	tests := map[string]struct {
		filter     deadletter.Filter
		unredriven bool
		left       []string
	}{
		"none":                       {deadletter.Filter{}, true, []string{}},
		"kinds":                      {deadletter.Filter{Kinds: []string{"a", "b"}}, true, []string{"c", "d"}},
		"kinds, of redriven ones":    {deadletter.Filter{Kinds: []string{"a", "b"}}, false, []string{"b", "c", "d"}},
		"no kinds":                   {deadletter.Filter{Kinds: []string{}}, true, all},
		"letters":                    {deadletter.Filter{IDs: []string{"1", "3"}}, true, []string{"a", "c"}},
		"no letters":                 {deadletter.Filter{IDs: []string{}}, true, all},
		"jobs":                       {deadletter.Filter{JobIDs: []string{"0", "1"}}, true, []string{"c", "d"}},
		"an error":                   {deadletter.Filter{ErrorContains: "on d"}, true, []string{"a", "b", "c"}},
		"younger ones":               {deadletter.Filter{YoungerThan: 150 * time.Minute}, true, []string{"a", "b"}},
		"older ones":                 {deadletter.Filter{OlderThan: 150 * time.Minute}, true, []string{"c", "d"}},
		"redriven ones":              {deadletter.Filter{Status: deadletter.StatusRedriven}, true, []string{"b", "d"}},
		"unredriven ones":            {deadletter.Filter{Status: deadletter.StatusUnredriven}, true, []string{"a", "c"}},
		"those behind a place":       {deadletter.Filter{After: "1"}, true, []string{"a", "b"}},
		"one that is of all of them": {deadletter.Filter{Kinds: all, IDs: []string{"1"}, JobIDs: []string{"1"}, ErrorContains: "b"}, true, []string{"a", "c", "d"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ids := openLetters(t, all...)
			reapertest.Exec(t, pool, `update job_dead_letter set final_error = 'died on ' || job_kind`)
			redriveAll(t, pool, deadletter.Filter{Kinds: []string{"a", "c"}})
			filter := test.filter
			for _, keys := range []*[]string{&filter.IDs, &filter.JobIDs} { // of places
				for i, place := range *keys {
					if i == 0 {
						*keys = slices.Clone(*keys)
					}
					(*keys)[i] = ids[place[0]-'0']
				}
			}
			for i := range filter.IDs {
				filter.IDs[i] = letterOf(t, pool, filter.IDs[i])
			}
			if filter.After != "" {
				filter.After = list(t, pool, deadletter.Filter{}, 2).Next
			}

			result := purgeAll(t, pool, 0, deadletter.PurgeConfig{Unredriven: test.unredriven, Filter: filter, Batch: 1})

			require.Equal(t, test.left, reapertest.Column(t, pool, `select job_kind from job_dead_letter order by 1`))
			require.Equal(t, 4-len(test.left), result.RedrivenCount+result.UnredrivenCount)
			reapertest.RequireAgreement(t, pool)
		})
	}
}
