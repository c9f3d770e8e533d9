package interleave_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/interleave"
)

// A line that is read as another schedule than the one that failed hides the failure.
func TestScheduleIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "ab-ba+c"} {
		schedule, err := interleave.Parse(text)
		require.NoError(t, err)
		require.Equal(t, text, schedule.String())
		require.Equal(t, text == "ab-ba+c", schedule.Cuts())
	}
	for _, text := range []string{"-", "a b", "A", "a1"} {
		_, err := interleave.Parse(text)
		require.ErrorIs(t, err, interleave.ErrSchedule, text)
	}
}

// choices is a play of two participants with one and two exchanges.
func choices(_ int, choose interleave.Choose) (*interleave.Record, error) {
	record := &interleave.Record{}
	left := []int{1, 2}
	for left[0]+left[1] > 0 {
		var possible []interleave.Action
		for who, n := range left {
			if n > 0 {
				possible = append(possible, interleave.Action{Who: who})
			}
		}
		action, err := choose(record.Schedule, possible)
		if err != nil {
			return nil, err
		}
		record.Schedule = append(record.Schedule, action)
		record.Possible = append(record.Possible, possible)
		left[action.Who]--
	}
	return record, nil
}

// An explorer that leaves out an order does not show that all are right.
func TestEverySchedule(t *testing.T) {
	t.Parallel()
	var played []string
	play := func(cuts int, choose interleave.Choose) (*interleave.Record, error) {
		record, err := choices(cuts, choose)
		played = append(played, record.Schedule.String())
		return record, err
	}
	n, whole, err := interleave.Every(play, 0, 10)
	require.NoError(t, err)
	require.True(t, whole)
	require.Equal(t, 3, n)
	require.Equal(t, []string{"abb", "bab", "bba"}, played)

	n, whole, err = interleave.Every(choices, 0, 2)
	require.NoError(t, err)
	require.False(t, whole)
	require.Equal(t, 2, n)
}

// Another sample each time would find a fault that nobody can look at again.
func TestSampleIsDrawnFromItsSeed(t *testing.T) {
	t.Parallel()
	sample := func(seed uint64) []string {
		var played []string
		require.NoError(t, interleave.Sample(func(cuts int, choose interleave.Choose) (*interleave.Record, error) {
			record, err := choices(cuts, choose)
			played = append(played, record.Schedule.String())
			return record, err
		}, 0, 20, seed))
		return played
	}
	first, again, other := sample(1), sample(1), sample(2)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
}
