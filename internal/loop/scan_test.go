package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/loop"
)

// A full poll reads the index entries of all jobs that were reaped since the last vacuum.
// With a short interval it would keep a processor busy.
func TestAFullPollCostsATenthOfTheTimeAtMost(t *testing.T) {
	t.Parallel()
	const took = 73 * time.Millisecond
	found, failing := stale(), reap{err: errServer}
	soon := time.Millisecond
	found.NextExpiry = &soon

	tests := map[string]struct {
		script script
		least  int // polls of everything, in a minute
	}{
		"when nothing is stale":  {script{polls: []poll{{result: idle(), fullTook: took}}}, 75},
		"when there is work":     {script{polls: []poll{{result: found, fullTook: took}}}, 75},
		"when a gate is closed":  {script{polls: []poll{{result: found, fullTook: took}}, reaps: []reap{{refused: true}}}, 75},
		"when an apply fails":    {script{polls: []poll{{result: found, fullTook: took}}, reaps: []reap{failing}}, 75},
		"when a batch is halved": {script{polls: []poll{{result: found, fullTook: took}}, reaps: []reap{{err: errSlow}}}, 75},
		"when the poll fails":    {script{polls: []poll{{err: errServer, fullTook: took}}}, 75},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := loop.Config{Batch: 1, Interval: 10 * time.Millisecond, MinInterval: time.Millisecond, Settle: 1}
			full := 0
			for _, e := range play(t, &test.script, cfg, time.Minute) {
				if e.what == "poll all" {
					full++
				}
			}
			require.LessOrEqual(t, time.Duration(full-1)*took, time.Minute/10)
			require.GreaterOrEqual(t, full, test.least)
		})
	}
}

// While a database does not answer, each poll takes its whole time limit. The loop must
// still notice soon that it is back.
func TestAPollThatFailedIsMadeAgainWithinHalfAMinute(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{err: errDown, took: 15 * time.Second}}}, config, 5*time.Minute)

	for i := range log[1:] {
		require.LessOrEqual(t, log[i+1].at-log[i].at, 45*time.Second)
	}
}

// A stale job before the cursor, such as one that was locked, must be found within a
// minute.
func TestALoopPollsAllOnceAMinute(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{result: idle()}}}, config, 10*time.Minute)

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

// With short intervals it must be found within two of them. With long ones, in a busy
// queue, it must be found in little more than half a minute.
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
			busy := &script{polls: []poll{{result: due(4 * test.min)}}}
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
