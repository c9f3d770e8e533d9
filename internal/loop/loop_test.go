package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An idle reaper on every machine of a fleet must not be a load.
func TestAnIdleLoopPollsOncePerInterval(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{result: idle()}}}, config, 10*time.Minute)

	require.InDelta(t, 21, len(log), 2)
	for i := 1; i < len(log); i++ {
		require.GreaterOrEqual(t, log[i].at-log[i-1].at, 27*time.Second)
		require.LessOrEqual(t, log[i].at-log[i-1].at, 30*time.Second)
	}
}

// A lease whose end is known must be reaped when it expires, not at the next interval.
func TestALoopWakesWhenTheNextLeaseExpires(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{result: due(7 * time.Second)}, {result: stale()}, {result: idle()}}}, config, 20*time.Second)

	within(t, log[0], "poll all", 0, 0)
	within(t, log[1], "poll", 7*time.Second, 7100*time.Millisecond)
	within(t, log[2], "reap", log[1].at, log[1].at)
}

// The duration of the poll must be subtracted from the wait.
func TestALoopCountsTheTimeOfThePoll(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{result: due(7 * time.Second), took: 2 * time.Second}, {result: idle()}}}, config, 20*time.Second)

	within(t, log[1], "poll", 7*time.Second, 7100*time.Millisecond)
}

// If leases expire every few milliseconds, there must not be a query for each.
func TestALoopKeepsItsMinimum(t *testing.T) {
	t.Parallel()

	result := stale()
	soon := time.Millisecond
	result.NextExpiry = &soon
	log := play(t, &script{polls: []poll{{result: result}}}, config, 30*time.Second)

	require.LessOrEqual(t, len(log), 2*31) // a poll and a reap a second
	require.GreaterOrEqual(t, len(log), 2*26)
}

// Reapers must not overload a database that is down, and must notice when it is back.
func TestALoopWaitsLongerAfterEachError(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{err: errDown}}}, config, 5*time.Minute)

	for i, longest := range []float64{1, 2, 4, 8, 16, 30, 30, 30} {
		gap := (log[i+1].at - log[i].at).Seconds()
		require.LessOrEqual(t, gap, longest)
		require.GreaterOrEqual(t, gap, longest*0.9)
	}
}

// An error of the server, such as a missing privilege, is retried as slowly, also if the
// poll before it succeeded.
func TestALoopWaitsLongerAfterEachFailedReap(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{result: stale()}}, reaps: []reap{{err: errServer}}}, config, 5*time.Minute)

	require.LessOrEqual(t, len(log), 2*16)
	require.NotContains(t, whats(log), "settle")
}

// While a gate is closed, there is one apply in each interval, whatever leases expire.
func TestALoopRestsWhenRefused(t *testing.T) {
	t.Parallel()

	result := stale()
	soon := time.Millisecond
	result.NextExpiry = &soon
	log := play(t, &script{polls: []poll{{result: result}}, reaps: []reap{{refused: true}}}, config, 5*time.Minute)

	require.LessOrEqual(t, len(log), 2*12)
}

// Replicas that were started together must not keep polling at the same time.
func TestLoopsDriftApart(t *testing.T) {
	t.Parallel()

	first := play(t, &script{polls: []poll{{result: idle()}}}, config, 10*time.Minute)
	second := play(t, &script{polls: []poll{{result: idle()}}}, config, 10*time.Minute)

	require.NotEqual(t, first, second)
}
