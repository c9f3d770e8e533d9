package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/loop"
)

// A backlog whose batches exceed the server's statement_timeout would never get
// smaller, however often the same batch is tried.
func TestALoopHalvesABatchThatTookTooLong(t *testing.T) {
	t.Parallel()

	slow, ok, broken := reap{err: errSlow}, reap{}, reap{err: errServer}
	tests := map[string]struct {
		reaps   []reap
		batches []int
	}{
		"until it goes through":      {[]reap{slow, slow, slow, ok}, []int{100, 50, 25, 12, 24, 48, 96, 100, 100}},
		"down to one job":            {[]reap{slow}, []int{100, 50, 25, 12, 6, 3, 1, 1, 1}},
		"again where it grows":       {[]reap{slow, slow, ok, slow, ok}, []int{100, 50, 25, 50, 25, 50, 100}},
		"but not for another error":  {[]reap{broken, slow, broken, ok}, []int{100, 100, 50, 50, 100}},
		"nor while a gate is closed": {[]reap{slow, {refused: true}, {refused: true}, ok}, []int{100, 50, 50, 50, 100}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config
			cfg.Batch = 100
			s := &script{polls: []poll{{sight: stale()}}, reaps: test.reaps}
			play(t, s, cfg, 10*time.Minute)
			require.Equal(t, test.batches, s.batches[:len(test.batches)])
		})
	}
}

// While halving makes progress the backlog must not wait for the longer each time;
// when it makes none, the database must not be kept busy.
func TestALoopTriesASmallerBatchSoon(t *testing.T) {
	t.Parallel()

	cfg := config
	cfg.Batch = 1 << 9
	log := play(t, &script{polls: []poll{{sight: stale()}}, reaps: []reap{{err: errSlow}}}, cfg, 10*time.Minute)

	for i := range 9 { // a poll and a reap each time
		require.Equal(t, time.Duration(i)*cfg.MinInterval, log[2*i].at)
	}
	require.Greater(t, log[len(log)-1].at-log[len(log)-3].at, 27*time.Second)
}

// A full poll walks the entries of all jobs that were reaped since the last vacuum.
// With a short interval it would keep a processor busy.
func TestAFullPollCostsATenthOfTheTimeAtMost(t *testing.T) {
	t.Parallel()
	const took = 73 * time.Millisecond
	found, failing := stale(), reap{err: errServer}
	soon := time.Millisecond
	found.Due = &soon

	tests := map[string]struct {
		script script
		least  int // polls of everything, in a minute
	}{
		"when nothing is stale":  {script{polls: []poll{{sight: idle(), fullTook: took}}}, 75},
		"when there is work":     {script{polls: []poll{{sight: found, fullTook: took}}}, 75},
		"when a gate is closed":  {script{polls: []poll{{sight: found, fullTook: took}}, reaps: []reap{{refused: true}}}, 75},
		"when an apply fails":    {script{polls: []poll{{sight: found, fullTook: took}}, reaps: []reap{failing}}, 75},
		"when a batch is halved": {script{polls: []poll{{sight: found, fullTook: took}}, reaps: []reap{{err: errSlow}}}, 75},
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

// A database that answers nothing costs a poll its whole limit. It must be noticed
// when it is back all the same.
func TestAPollThatFailedIsMadeAgainWithinHalfAMinute(t *testing.T) {
	t.Parallel()

	log := play(t, &script{polls: []poll{{err: errDown, took: 15 * time.Second}}}, config, 5*time.Minute)

	for i := range log[1:] {
		require.LessOrEqual(t, log[i+1].at-log[i].at, 45*time.Second)
	}
}
