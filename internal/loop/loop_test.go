package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/loop"
)

// An idle reaper on every machine of a fleet must not be a load.
func TestAnIdleLoopPollsOncePerInterval(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{sight: idle()}}}, config, 10*time.Minute)

	require.InDelta(t, 21, len(log), 2)
	for i := 1; i < len(log); i++ {
		require.GreaterOrEqual(t, log[i].at-log[i-1].at, 27*time.Second)
		require.LessOrEqual(t, log[i].at-log[i-1].at, 30*time.Second)
	}
}

// What a poll passed by, a locked row say, must not be missed for longer than a
// minute.
func TestALoopPollsAllOnceAMinute(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{sight: idle()}}}, config, 10*time.Minute)

	within(t, log[0], "poll all", 0, 0)
	require.Equal(t, "poll", log[1].what)
	last := time.Duration(0)
	for _, e := range log {
		if e.what == "poll all" {
			require.LessOrEqual(t, e.at-last, time.Minute)
			last = e.at
		}
	}
	require.Greater(t, last, 8*time.Minute)
}

// Nor for longer than two intervals when these are short, nor, in a busy queue,
// for much longer than half a minute when they are long.
func TestABusyLoopPollsAllNowAndThen(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ interval, min, most time.Duration }{
		"a short interval": {50 * time.Millisecond, time.Millisecond, 100 * time.Millisecond},
		"the default":      {30 * time.Second, time.Second, time.Minute},
		"a long interval":  {time.Hour, time.Second, 40 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := loop.Config{Batch: 1, Interval: test.interval, MinInterval: test.min, Settle: 1}
			busy := &script{polls: []poll{{sight: due(4 * test.min)}}}
			last, partial := time.Duration(0), 0
			for _, e := range play(t, busy, cfg, 10*test.most) {
				if e.what == "poll" {
					partial++
					continue
				}
				require.LessOrEqual(t, e.at-last, test.most)
				last = e.at
			}
			require.Greater(t, last, 8*test.most)
			require.Greater(t, partial, 50)
		})
	}
}

// A lease whose end is known must be met when it ends, not at the next interval.
func TestALoopWakesWhenTheNextLeaseExpires(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{sight: due(7 * time.Second)}, {sight: stale()}, {sight: idle()}}}, config, 20*time.Second)

	within(t, log[0], "poll all", 0, 0)
	within(t, log[1], "poll", 7*time.Second, 7100*time.Millisecond)
	within(t, log[2], "reap", log[1].at, log[1].at)
}

// The time that the poll itself took has passed already.
func TestALoopCountsTheTimeOfThePoll(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{sight: due(7 * time.Second), took: 2 * time.Second}, {sight: idle()}}}, config, 20*time.Second)

	within(t, log[1], "poll", 7*time.Second, 7100*time.Millisecond)
}

// Leases that end every few milliseconds must not make a query each.
func TestALoopKeepsItsMinimum(t *testing.T) {
	t.Parallel()

	sight := stale()
	soon := time.Millisecond
	sight.Due = &soon
	log := play(t, &script{polls: []poll{{sight: sight}}}, config, 30*time.Second)

	require.LessOrEqual(t, len(log), 2*31) // a poll and a reap a second
	require.GreaterOrEqual(t, len(log), 2*26)
}

// A database that is down must not be hammered by every reaper of the fleet, and
// must be noticed when it is back.
func TestALoopWaitsLongerAfterEachError(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{err: errDown}}}, config, 5*time.Minute)

	for i, longest := range []float64{1, 2, 4, 8, 16, 30, 30, 30} {
		gap := (log[i+1].at - log[i].at).Seconds()
		require.LessOrEqual(t, gap, longest)
		require.GreaterOrEqual(t, gap, longest*0.9)
	}
}

// An error of the server's, a missing right say, is tried again as slowly, also
// when the poll before it went well.
func TestALoopWaitsLongerAfterEachFailedReap(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{sight: stale()}}, reaps: []reap{{err: errServer}}}, config, 5*time.Minute)

	require.LessOrEqual(t, len(log), 2*16)
	require.NotContains(t, whats(log), "settle")
}

// A closed gate is asked once per interval, no matter what is due.
func TestALoopRestsWhenRefused(t *testing.T) {
	t.Parallel()

	sight := stale()
	soon := time.Millisecond
	sight.Due = &soon
	log := play(t, &script{polls: []poll{{sight: sight}}, reaps: []reap{{refused: true}}}, config, 5*time.Minute)

	require.LessOrEqual(t, len(log), 2*12)
}

// Replicas that were started together must not stay in step.
func TestLoopsDriftApart(t *testing.T) {
	t.Parallel()

	first := play(t, &script{polls: []poll{{sight: idle()}}}, config, 10*time.Minute)
	second := play(t, &script{polls: []poll{{sight: idle()}}}, config, 10*time.Minute)

	require.NotEqual(t, first, second)
}
