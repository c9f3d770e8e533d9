package deadletter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// A filter that lets too much through redrives what nobody wanted to.
func TestFilterLetsThroughWhatItNames(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "a", "b", "c", "it's {job_id} $1", "") // 5 to 1 hours old
	reapertest.Exec(t, pool, `update job_dead_letter set final_error = 'Timeout: 100% of {queue} _' where job_kind in ('a', 'b')`)
	redriveAll(t, pool, deadletter.Filter{JobIDs: ids[1:2]})
	letters := make([]string, len(ids))
	for i, id := range ids {
		letters[i] = letterOf(t, pool, id)
	}
	pools := reapertest.InEveryMode(t, pool)

	tests := map[string]struct {
		filter deadletter.Filter
		want   []int // the places of the letters
	}{
		"nothing":                {deadletter.Filter{}, []int{0, 1, 2, 3, 4}},
		"ids":                    {deadletter.Filter{IDs: []string{letters[3], letters[0]}}, []int{0, 3}},
		"ids in another form":    {deadletter.Filter{IDs: []string{"{" + strings.ToUpper(letters[3]) + "}"}}, []int{3}},
		"the same id twice":      {deadletter.Filter{IDs: []string{letters[3], letters[3]}}, []int{3}},
		"an id of nobody":        {deadletter.Filter{IDs: []string{ids[0]}}, nil},
		"no ids":                 {deadletter.Filter{IDs: []string{}}, nil},
		"jobs":                   {deadletter.Filter{JobIDs: ids[1:3]}, []int{1, 2}},
		"no jobs":                {deadletter.Filter{JobIDs: []string{}}, nil},
		"kinds":                  {deadletter.Filter{Kinds: []string{"a", "c", "nobody's"}}, []int{0, 2}},
		"an odd kind":            {deadletter.Filter{Kinds: []string{"it's {job_id} $1"}}, []int{3}},
		"the empty kind":         {deadletter.Filter{Kinds: []string{""}}, []int{4}},
		"no kinds":               {deadletter.Filter{Kinds: []string{}}, nil},
		"a part of the error":    {deadletter.Filter{ErrorContains: "100% of {queue} _"}, []int{0, 1}},
		"no pattern of an error": {deadletter.Filter{ErrorContains: "%"}, []int{0, 1}},
		"the error's case":       {deadletter.Filter{ErrorContains: "timeout"}, nil},
		"older":                  {deadletter.Filter{OlderThan: 210 * time.Minute}, []int{0, 1}},
		"younger":                {deadletter.Filter{YoungerThan: 210 * time.Minute}, []int{2, 3, 4}},
		"between":                {deadletter.Filter{OlderThan: 90 * time.Minute, YoungerThan: 210 * time.Minute}, []int{2, 3}},
		"older than all time":    {deadletter.Filter{OlderThan: 1<<63 - 1}, nil},
		"redriven":               {deadletter.Filter{Status: deadletter.StatusRedriven}, []int{1}},
		"unredriven":             {deadletter.Filter{Status: deadletter.StatusUnredriven}, []int{0, 2, 3, 4}},
		"all that there is, at once": {
			deadletter.Filter{
				IDs: letters, JobIDs: ids, Kinds: []string{"a", "b"}, ErrorContains: "Time", OlderThan: 1, YoungerThan: 99 * time.Hour,
				Status: deadletter.StatusUnredriven, After: "-infinity/" + letters[0],
			}, []int{0},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := []string{}
			for _, i := range test.want {
				want = append(want, ids[i])
			}
			for mode, pool := range pools {
				require.Equal(t, want, jobsIn(list(t, pool, test.filter, 10)), mode)
			}
		})
	}
}

// A collation that ignores case knows no part of a text, and takes kinds for equal
// that are not.
func TestAFilterComparesTextsAsTheyAre(t *testing.T) {
	t.Parallel()
	const changed = `
create extension if not exists citext;
create type sort as enum ('a', 'A', 'b');
create collation loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
alter table job_dead_letter `

	tests := map[string]struct{ change string }{
		"a collation": {changed + `alter column job_kind type text collate loose, alter column final_error type text collate loose`},
		"citext":      {changed + `alter column job_kind type citext, alter column final_error type citext`},
		"an enum":     {changed + `alter column job_kind type sort using job_kind::sort`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ids := openLetters(t, "a", "A", "b")
			reapertest.Exec(t, pool, `update job_dead_letter set final_error = 'Timeout' where job_kind <> 'b'`)
			reapertest.Exec(t, pool, test.change)

			require.Equal(t, ids[:1], jobsIn(list(t, pool, deadletter.Filter{Kinds: []string{"a"}}, 10)))
			require.Equal(t, ids[:2], jobsIn(list(t, pool, deadletter.Filter{ErrorContains: "Time"}, 10)))
			require.Empty(t, jobsIn(list(t, pool, deadletter.Filter{ErrorContains: "time", Kinds: []string{"a", "A"}}, 10)))
			require.Equal(t, ids[1:2], jobsOf(redriveAll(t, pool, deadletter.Filter{Kinds: []string{"A"}, ErrorContains: "T"})))
		})
	}
}
